//! One key at a time: what each operation does, and which keys and values there are.

use crate::stores::{Stores, on_main};
use do_core::testing::{Case, Driver, Fault, Lab, Outcome, holds, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t17 what is put is there with its expiry and its version", |lab| Box::pin(put(lab))),
        Case::new("t17 what is removed or taken is not there any more", |lab| Box::pin(removed(lab))),
        Case::new("t17 a key that is there is not put if absent", |lab| Box::pin(absent(lab))),
        Case::new("t17 a value is swapped only while it has its version", |lab| Box::pin(swapped(lab))),
        Case::new("t17 a version is of one put, and later ones are larger", |lab| Box::pin(versions(lab))),
        Case::new("t17 a store that was never put to has nothing", |lab| Box::pin(untouched(lab))),
        Case::new("t17 stores of one object share nothing", |lab| Box::pin(apart(lab))),
        Case::new("t17 a store is opened with one name and one kind of settings", |lab| {
            Box::pin(opened(lab))
        }),
        Case::new("t15 values are bytes, whichever", |lab| Box::pin(bytes(lab))),
        Case::new("t15 keys are texts, whichever, and compared by their bytes", |lab| Box::pin(keys(lab))),
        Case::new("t15 a key or an entry that is too large is refused and changes nothing", |lab| {
            Box::pin(too_large(lab))
        }),
    ]
}

async fn put<D: Driver>(lab: &Lab<D>) -> Outcome {
    let put = lab.main("a", json!({"put": ["k", "v", 600_000]})).await?;
    let entry = lab.main("a", json!({"get_entry": "k"})).await?;
    same("the entry", &entry, json!({"value": "v", "expires": put["expires"], "version": put["version"]}))?;
    let left = put["expires"].as_i64().unwrap_or(0) - lab.now("a").await?;
    holds(format!("{left} ms are left"), (1..=600_000).contains(&left))?;
    same("its value", lab.main("a", json!({"get": "k"})).await?, "v")?;
    same("contains", lab.main("a", json!({"contains": "k"})).await?, true)?;
    lab.main("a", json!({"put": ["k", "w", null]})).await?;
    let entry = lab.main("a", json!({"get_entry": "k"})).await?;
    same("the next", [&entry["value"], &entry["expires"]], [json!("w"), Value::Null])?;
    same("rows", lab.rows("a").await?, 1)
}

async fn removed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let get = on_main(json!({"get": "k"}));
    for (gone, gives) in [
        (json!({"remove": "k"}), json!(true)),
        (json!({"touch": ["k", 0]}), json!(true)),
        (json!({"put": ["k", "w", -1]}), json!("removed")),
    ] {
        lab.main("a", json!({"put": ["k", "v", 600_000]})).await?;
        same(&gone.to_string(), lab.main("a", gone.clone()).await?, gives)?;
        same("after it", lab.tell("a", get.clone()).await?, Value::Null)?;
        same("rows", lab.rows("a").await?, 0)?;
    }
    same("nothing", lab.main("a", json!({"remove": "k"})).await?, false)?;
    same("nothing", lab.main("a", json!({"put": ["k", "w", 0]})).await?, "removed")?;
    let put = lab.main("a", json!({"put": ["k", "v", 600_000]})).await?;
    let taken = json!({"value": "v", "expires": put["expires"], "version": put["version"]});
    same("taken", lab.main("a", json!({"take": "k"})).await?, taken)?;
    same("taken again", lab.main("a", json!({"take": "k"})).await?, Value::Null)?;
    same("rows", lab.rows("a").await?, 0)
}

async fn absent<D: Driver>(lab: &Lab<D>) -> Outcome {
    let put = lab.main("a", json!({"put_if_absent": ["k", "v", 600_000]})).await?;
    let there = lab.main("a", json!({"put_if_absent": ["k", "w", null]})).await?;
    let entry = json!({"value": "v", "expires": put["done"]["expires"], "version": put["done"]["version"]});
    same("what is there", there, json!({ "present": entry }))?;
    same("its value", lab.main("a", json!({"get": "k"})).await?, "v")?;
    let over = lab.main("a", json!({"put_if_absent": ["j", "w", 0]})).await?;
    same("one that is over", over, json!({"done": "removed"}))?;
    same(
        "nor then",
        lab.main("a", json!({"put_if_absent": ["k", "w", 0]})).await?["present"]["value"].clone(),
        "v",
    )
}

async fn swapped<D: Driver>(lab: &Lab<D>) -> Outcome {
    let swap = async |version: &Value, value: &str| {
        lab.main("a", json!({"compare_and_swap": ["k", version, value, 600_000]})).await
    };
    same("nothing", swap(&json!(1), "v").await?, json!({"differs": null}))?;
    same("still", lab.main("a", json!({"contains": "k"})).await?, false)?;
    let first = lab.main("a", json!({"put": ["k", "v", 600_000]})).await?["version"].clone();
    let second = swap(&first, "w").await?["done"]["version"].clone();
    let differs = swap(&first, "x").await?;
    same(
        "the second",
        [&differs["differs"]["value"], &differs["differs"]["version"]],
        [&json!("w"), &second],
    )?;
    lab.main("a", json!({"remove": "k"})).await?;
    same("removed", swap(&second, "x").await?, json!({"differs": null}))?;
    lab.main("a", json!({"put": ["k", "w", 600_000]})).await?;
    same("put again", swap(&second, "x").await?["differs"]["value"].clone(), "w")?;
    same("its value", lab.main("a", json!({"get": "k"})).await?, "w")
}

async fn versions<D: Driver>(lab: &Lab<D>) -> Outcome {
    let put = on_main(json!({"put": ["k", "v", 600_000]}));
    let puts = lab.tell("a", json!({"times": [100, put]})).await?;
    let versions: Vec<u64> =
        puts.as_array().into_iter().flatten().filter_map(|put| put["version"].as_u64()).collect();
    same("puts", versions.len(), 100)?;
    holds(format!("{versions:?} grow"), versions.is_sorted_by(|a, b| a < b))?;
    holds(format!("{versions:?} are exact in JavaScript"), versions.iter().all(|v| *v < 1 << 53))?;
    lab.main("a", json!({"touch": ["k", null]})).await?;
    let touched = lab.main("a", json!({"get_entry": "k"})).await?;
    same("touched", touched["version"].as_u64(), versions.last())
}

async fn untouched<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (command, gives) in [
        (json!({"get": "k"}), Value::Null),
        (json!({"get_entry": "k"}), Value::Null),
        (json!({"contains": "k"}), json!(false)),
        (json!({"touch": ["k", 1_000]}), json!(false)),
        (json!({"remove": "k"}), json!(false)),
        (json!({"take": "k"}), Value::Null),
        (json!({"compare_and_swap": ["k", 1, "v", null]}), json!({"differs": null})),
        (json!({"put": ["k", "v", 0]}), json!("removed")),
    ] {
        same(&command.to_string(), lab.main("a", command.clone()).await?, gives)?;
    }
    same("there is no table", lab.tell("a", json!({"stored": "rows"})).await?, Value::Null)?;
    same("nor an alarm", lab.tell("a", json!({"alarm": "get"})).await?, Value::Null)
}

async fn apart<D: Driver>(lab: &Lab<D>) -> Outcome {
    let put = |store: &str, value: &str| json!({"store": [store, {"put": ["k", value, null]}]});
    lab.tell("a", json!([put("a", "1"), put("b", "2"), put("A", "3"), put("a\u{0}", "4")])).await?;
    lab.tell("a", json!({"store": ["b", {"remove": "k"}]})).await?;
    let get = |store: &str| json!({"store": [store, {"get": "k"}]});
    let got = lab.tell("a", json!([get("a"), get("b"), get("A"), get("a\u{0}"), get("c")])).await?;
    same("values", got, json!(["1", null, "3", "4", null]))
}

async fn opened<D: Driver>(lab: &Lab<D>) -> Outcome {
    for name in [String::new(), "n".repeat(65)] {
        let refused = lab.refused("a", json!({"store": [name, {"get": "k"}]})).await?;
        same("the name", refused.kind, "Invalid")?;
    }
    lab.tell("a", json!({"store": ["n".repeat(64), {"put": ["k", "v", null]}]})).await?;
    same("opened again", lab.tell("a", json!({"stored": {"reopen": ["main", {}]}})).await?, Value::Null)?;
    let refused = lab.refused("a", json!({"stored": {"reopen": ["main", {"notify": true}]}})).await?;
    same("other settings", refused.kind, "Invalid")
}

async fn bytes<D: Driver>(lab: &Lab<D>) -> Outcome {
    for value in [json!(""), json!("e\u{301}\u{0}\u{10ffff}"), json!([0]), json!([255, 0, 254]), json!("[1]")]
    {
        lab.main("a", json!({"put": ["k", value, null]})).await?;
        // What is a text is told as one.
        let expected = if value == json!([0]) { json!("\u{0}") } else { value };
        same("the value", lab.main("a", json!({"get": "k"})).await?, expected)?;
    }
    let all: Vec<u8> = (0..=255).collect();
    lab.main("a", json!({"put": ["k", all, null]})).await?;
    same("every byte", lab.main("a", json!({"get": "k"})).await?, all)
}

async fn keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    let keys = [
        "",
        "\u{0}",
        "k",
        "k\u{0}",
        "k\u{0}x",
        "K",
        "k ",
        "é",
        "e\u{301}",
        "%",
        "_",
        "'",
        "\u{10ffff}",
        "k\n",
        "1",
        "1.0",
    ];
    let put = |key: &&str| on_main(json!({"put": [key, *key, null]}));
    lab.tell("a", keys.iter().map(put).collect()).await?;
    let get = |key: &&str| on_main(json!({"get": key}));
    same("values", lab.tell("a", keys.iter().map(get).collect()).await?, keys)?;
    same("rows", lab.rows("a").await?, keys.len())?;
    lab.main("a", json!({"remove": "k\u{0}"})).await?;
    same("the others", lab.main("a", json!({"get": "k"})).await?, "k")?;
    same("rows", lab.rows("a").await?, keys.len() - 1)
}

/// Longest key.
const KEY_BYTES: usize = 512;
/// Of a key and its value.
const ENTRY_BYTES: usize = 2_000_000 - 256;

async fn too_large<D: Driver>(lab: &Lab<D>) -> Outcome {
    let long = "\u{e9}".repeat(KEY_BYTES / 2);
    lab.main("a", json!({"put": [long, {"filled": ENTRY_BYTES - KEY_BYTES}, null]})).await?;
    let got = lab.main("a", json!({"get": long})).await?;
    same("the largest", got, json!({"length": ENTRY_BYTES - KEY_BYTES}))?;
    // In a store with the longest name, too.
    let most = json!({"put": [long, {"filled": ENTRY_BYTES - KEY_BYTES}, {"sliding": 1_000_000, "max_age": 9_000_000}]});
    lab.tell("a", json!({"store": ["s".repeat(64), most]})).await?;
    lab.main("a", json!({"put": ["k", "v", null]})).await?;
    let version = lab.main("a", json!({"get_entry": "k"})).await?["version"].clone();
    let too_long = "k".repeat(KEY_BYTES + 1);
    let filled = json!({"filled": ENTRY_BYTES});
    for command in [
        json!({"put": [too_long, "v", null]}),
        json!({"put": ["k", filled, null]}),
        json!({"put": ["k", filled, 0]}),
        json!({"put_if_absent": [too_long, "v", null]}),
        json!({"put_if_absent": ["l", filled, null]}),
        json!({"compare_and_swap": ["k", version, filled, null]}),
    ] {
        refused(lab, command).await?;
    }
    same("what was there", lab.main("a", json!({"get": "k"})).await?, "v")?;
    same("none of that length", lab.main("a", json!({"get": too_long})).await?, Value::Null)?;
    same("rows", lab.rows("a").await?, 3)
}

async fn refused<D: Driver>(lab: &Lab<D>, command: Value) -> Result<(), Fault> {
    let refused = lab.refused("a", on_main(command)).await?;
    same("the error", [&*refused.kind, &*refused.name], ["Limit", "Error"])
}
