//! From a crate to a folder that workerd can serve: `index.js`, `index_bg.wasm`, `worker.capnp`.

use super::args;
use super::config::Config;
use super::npm::Tools;
use super::{capnp, lock, npm, shim, template};
use crate::command::{self, run};
use crate::problem::{Doing, Outcome, Problem};
use crate::wasm::{self, Panic};
use crate::workspace::{Member, Workspace};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate that is meant when none is named.
pub(crate) const DEFAULT_CRATE: &str = "examples/sync-server";
/// What wasm-opt may use: everything that the compiler already does.
const WASM_FEATURES: [&str; 8] = [
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-multivalue",
    "--enable-reference-types",
    "--enable-exception-handling",
];

/// What to build, and how; see [`args::Build`].
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The crate.
    pub(crate) member: &'a Member,
    /// Where the folder is written.
    pub(crate) out: PathBuf,
    /// Cargo's `dev` profile instead of `worker`.
    pub(crate) dev: bool,
    /// What a panic does.
    pub(crate) panic: Panic,
    /// Run wasm-opt.
    pub(crate) opt: bool,
    /// Have wasm-opt installed for use after the build.
    pub(crate) optimiser: bool,
    /// Minify the JavaScript.
    pub(crate) minify: bool,
    /// Add what the contract suite wants of a Worker.
    pub(crate) testing: bool,
}

/// A folder that was built. Nobody writes it while this lives.
#[derive(Debug)]
pub(crate) struct Built {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The crate's `wrangler.toml`.
    pub(crate) config: Config,
    /// The programs that were used, and the runtime.
    pub(crate) tools: Tools,
    _lock: File,
}

impl<'a> Plan<'a> {
    /// The defaults of this crate: the recommended kind of panic, small.
    pub(crate) fn new(workspace: &Workspace, member: &'a Member, panic: Panic, testing: bool) -> Self {
        let folder = format!("{}-{}{}", member.name, panic.name(), if testing { "-testing" } else { "" });
        let out = workspace.target.join("workers").join(folder);
        Self { member, out, dev: false, panic, opt: false, optimiser: false, minify: false, testing }
    }

    /// What a command line asks for.
    ///
    /// # Errors
    /// Its folder is not that of a crate of this workspace.
    pub(crate) fn asked(workspace: &'a Workspace, asked: &args::Build) -> Outcome<Self> {
        let default = || workspace.root.join(DEFAULT_CRATE);
        let folder = asked.crate_folder.clone().unwrap_or_else(default);
        let mut plan = Self::new(workspace, member(workspace, &folder)?, asked.panic, asked.testing);
        (plan.dev, plan.opt, plan.minify) = (asked.dev, asked.opt, asked.minify);
        if let Some(out) = &asked.out {
            // Cargo runs in the root folder, we where we were started.
            plan.out = std::path::absolute(out).doing(out.display())?;
        }
        Ok(plan)
    }
}

/// The member whose manifest is in this folder.
///
/// # Errors
/// There is none.
pub(crate) fn member<'a>(workspace: &'a Workspace, folder: &Path) -> Outcome<&'a Member> {
    let real = fs::canonicalize(folder).doing(folder.display())?;
    let same = |member: &&Member| fs::canonicalize(&member.folder).is_ok_and(|of| of == real);
    workspace.members.iter().find(same).ok_or_else(|| {
        Problem::new(format!("{} is not the folder of a crate of this workspace", folder.display()))
    })
}

/// Builds.
///
/// # Errors
/// The crate is no Worker, a tool is missing and cannot be installed, or a step fails.
pub(crate) fn build(workspace: &Workspace, plan: &Plan<'_>) -> Outcome<Built> {
    let name = &plan.member.name;
    let Some(library) = &plan.member.cdylib else {
        return Err(Problem::new(format!("{name} is no Worker: its [lib] has no crate-type \"cdylib\"")));
    };
    let config = Config::open(&plan.member.folder)?;
    let second = if plan.testing { Config::second(&plan.member.folder)? } else { None };
    let tools = npm::tools(workspace, plan.opt || plan.optimiser)?;
    let template = template::template(workspace, plan.panic)?;
    let toolchain = wasm::toolchain(workspace, plan.panic)?;

    fs::create_dir_all(&plan.out).doing(plan.out.display())?;
    let lock_file = plan.out.join(".lock");
    File::create(&lock_file).doing(lock_file.display())?;
    let held = lock(&lock_file)?;

    // The two builds share nothing, and alone neither keeps two cores busy to its end.
    let bindgen = command::begin(&mut workspace.cargo(&["build", "--package", "xtask-bindgen"]))?;
    let mut cargo = toolchain.cargo(workspace, "build");
    cargo.args(["--lib", "--package", name]);
    if !plan.dev {
        cargo.args(["--profile", "worker"]);
    }
    run(&mut cargo)?;
    bindgen.finish()?;

    let stage = plan.out.join(".stage");
    let _ = fs::remove_dir_all(&stage); // of an interrupted run
    fs::create_dir(&stage).doing(stage.display())?;
    let wasm = toolchain.artifact(workspace, if plan.dev { "debug" } else { "worker" }, library);
    run(Command::new(workspace.target.join("debug/xtask-bindgen")).arg(wasm).arg(&stage))?;
    if plan.opt {
        let file = stage.join("index_bg.wasm");
        optimise(&tools, &file, &file)?;
    }
    bundle(&tools, [Some(&config), second.as_ref()].into_iter().flatten(), &stage, &template, plan)?;
    for file in ["index.js", "index_bg.wasm"] {
        fs::rename(stage.join(file), plan.out.join(file)).doing(plan.out.join(file).display())?;
    }
    fs::remove_dir_all(&stage).doing(stage.display())?;
    write(&plan.out, "worker.capnp", &capnp::file(&config, plan.testing))?;
    if let Some(second) = second {
        write(&plan.out, "worker.second.capnp", &capnp::file(&second, plan.testing))?;
    }
    println!("{}: a Worker with panic={}", plan.out.display(), plan.panic.name());
    Ok(Built { folder: plan.out.clone(), config, tools, _lock: held })
}

/// Runs wasm-opt for size and takes the names out.
///
/// # Errors
/// It fails, or there is no node.
pub(crate) fn optimise(tools: &Tools, from: &Path, to: &Path) -> Outcome {
    let mut wasm_opt = Command::new("node");
    wasm_opt.arg(&tools.wasm_opt).args(["-Oz", "--strip-debug", "--strip-producers"]).args(WASM_FEATURES);
    run(wasm_opt.arg(from).arg("-o").arg(to))
}

/// Replaces wasm-bindgen's `index.js` by the bundle of it and the entry module.
fn bundle<'a>(
    tools: &Tools,
    deployments: impl Iterator<Item = &'a Config>,
    stage: &Path,
    template: &str,
    plan: &Plan<'_>,
) -> Outcome {
    let bound = deployments.flat_map(|config| config.objects.values());
    let glue = fs::read_to_string(stage.join("index.js")).doing("the JavaScript of wasm-bindgen")?;
    write(stage, "shim.js", &shim::fill(template, &glue, bound, plan.testing)?)?;
    let mut esbuild = Command::new(&tools.esbuild);
    // The runtime has these modules; the wasm file stays a file.
    esbuild.args(
        ["./index_bg.wasm", "cloudflare:*", "workerd:*", "node:*"].map(|name| format!("--external:{name}")),
    );
    esbuild.args(["--bundle", "--format=esm", "--log-level=warning", "./shim.js", "--outfile=bundle.js"]);
    if plan.minify {
        esbuild.arg("--minify");
    }
    run(esbuild.current_dir(stage))?;
    let bundle = fs::read_to_string(stage.join("bundle.js")).doing("the bundle of esbuild")?;
    write(stage, "index.js", &shim::plain_imports(&bundle))
}

/// Writes a file of the folder.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Outcome {
    let file = folder.join(name);
    fs::write(&file, text).doing(file.display())
}
