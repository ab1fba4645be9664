//! A: names, ids, and what an object sees of them.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
    route::percent_encoded,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("a1 a name is always the same object and any other text another one", |lab| {
            Box::pin(a1_names(lab))
        }),
        Case::new("a2 the empty name is a name", |lab| Box::pin(a2_empty(lab))),
        Case::new("a3 a unique id is new and has no name", |lab| Box::pin(a3_unique(lab))),
        Case::new("a4 an id is read from text in either case", |lab| Box::pin(a4_text(lab))),
        Case::new("a5 a6 what is no id of the namespace is refused", |lab| Box::pin(a5_wrong(lab))),
        Case::new("a9 the object has the name that the first caller came by", |lab| Box::pin(a9_first(lab))),
        Case::new("a9 a name that is too long is refused", |lab| Box::pin(a9_long(lab))),
    ]
}

async fn id_of<D: Driver>(lab: &Lab<D>, object: &str) -> Result<String, Fault> {
    text(lab, &lab.path("id", object)).await
}

async fn text<D: Driver>(lab: &Lab<D>, path: &str) -> Result<String, Fault> {
    Ok(serde_json::from_value(lab.value(path, &Value::Null).await?)?)
}

async fn a1_names<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = lab.run("a", json!([{"sql": "INSERT INTO n VALUES (7)"}, "id", "name"])).await?;
    let id = id_of(lab, "a").await?;
    let digits = id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    holds(format!("{id} is not 64 lower-case hex digits"), id.len() == 64 && digits)?;
    same("the id inside", &first[1], json!(id))?;
    same("the name inside", &first[2], json!(lab.name("a")))?;
    same("the same name again", lab.last("a", json!([{"sql": "SELECT n FROM n"}])).await?, json!([7]))?;
    for other in ["A", "a ", " a", "á", "a\u{301}", "a\0", "a/"] {
        holds(format!("{other:?} has another id"), id_of(lab, other).await? != id)?;
        let seen = lab.run(other, json!([{"sql": "SELECT n FROM n"}, "name"])).await?;
        same(&format!("{other:?} is another object"), seen, [json!([]), json!(lab.name(other))])?;
    }
    Ok(())
}

async fn a2_empty<D: Driver>(lab: &Lab<D>) -> Outcome {
    // In the other namespace, where no other case has it.
    same("the name inside", lab.value("/run/OTHER/", &json!(["name"])).await?, json!([""]))
}

async fn a3_unique<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = text(lab, "/unique/PROBE/").await?;
    holds("two are equal", id != text(lab, "/unique/PROBE/").await?)?;
    let seen = lab.value(&format!("/run-id/PROBE/{id}"), &json!(["id", "name"])).await?;
    same("what the object sees", seen, json!([id, null]))
}

async fn a4_text<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    lab.run("a", json!([{"sql": "INSERT INTO n VALUES (7)"}])).await?;
    for text in [id.clone(), id.to_uppercase()] {
        let seen =
            lab.value(&format!("/run-id/PROBE/{text}"), &json!([{"sql": "SELECT n FROM n"}, "id"])).await?;
        same(&text, seen, json!([[7], id]))?;
    }
    Ok(())
}

async fn a5_wrong<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    let other = text(lab, &format!("/id/OTHER/{}", percent_encoded(&lab.name("a")))).await?;
    let tail = if id.ends_with('0') { "1" } else { "0" };
    let damaged = format!("{}{tail}", &id[..63]);
    let wrong = [String::new(), id[..63].to_owned(), format!("{id}0"), "z".repeat(64), damaged, other];
    for text in wrong {
        match lab.ask(&format!("/run-id/PROBE/{text}"), &json!([])).await? {
            Ok(values) => return Err(Fault::new(format!("{text:?} reached an object: {values}"))),
            Err(thrown) => same(&format!("the kind for {text:?}"), thrown.kind, "Invalid")?,
        }
    }
    Ok(())
}

async fn a9_first<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("by name", lab.last("a", json!(["name"])).await?, json!(lab.name("a")))?;
    let id = id_of(lab, "b").await?;
    let by_id = lab.value(&format!("/run-id/PROBE/{id}"), &json!(["name"])).await?;
    same("by id", by_id, json!([null]))?;
    same("by name, when the first came by id", lab.last("b", json!(["name"])).await?, Value::Null)
}

async fn a9_long<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = "x".repeat(1_024 - lab.name("").len());
    same("1,024 bytes", lab.last(&longest, json!(["name"])).await?, json!(lab.name(&longest)))?;
    let thrown = lab.thrown(&format!("{longest}x"), json!([])).await?;
    same("the kind for 1,025 bytes", thrown.kind, "Limit")
}
