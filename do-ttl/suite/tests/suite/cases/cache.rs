//! The ready object, by its HTTP face and by its stub.

use do_core::testing::{Case, Driver, Fault, Lab, Outcome, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t17 a cache answers requests with versions, times and conditions", |lab| {
            Box::pin(requests(lab))
        }),
        Case::new("t17 any text is a key of a cache", |lab| Box::pin(keys(lab))),
        Case::new("t17 the stub of a cache does what its store does", |lab| Box::pin(stub(lab))),
    ]
}

async fn ask<D: Driver>(
    lab: &Lab<D>,
    method: &str,
    path: &str,
    headers: Value,
    body: &str,
) -> Result<(u64, Value, String), Fault> {
    let command = json!([{"http": [method, path, headers, body]}]);
    let answers = lab.value(&lab.address("/cache", "a"), &command).await?;
    let answer: Vec<(u64, Value, String)> = serde_json::from_value(answers)?;
    answer.into_iter().next().ok_or_else(|| Fault::new("no answer"))
}

async fn requests<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (status, put, _) = ask(lab, "PUT", "/entry/k", json!([["ttl", "30000"]]), "hello").await?;
    let tag = put["etag"].clone();
    same("put", (status, &put["ttl"]), (204, &json!("30000")))?;
    let (status, got, body) = ask(lab, "GET", "/entry/k", json!([]), "").await?;
    same("get", (status, body.as_str(), &got["etag"]), (200, "hello", &tag))?;
    same("its type", &got["content-type"], json!("application/octet-stream"))?;
    let (status, head, body) = ask(lab, "HEAD", "/entry/k", json!([]), "").await?;
    same(
        "head",
        (status, body.as_str(), &head["etag"], &head["content-length"]),
        (200, "", &tag, &json!("5")),
    )?;
    let (status, known, body) = ask(lab, "GET", "/entry/k", json!([["if-none-match", tag]]), "").await?;
    same("known", (status, body.as_str(), &known["etag"]), (304, "", &tag))?;
    let (status, _, body) = ask(lab, "PUT", "/entry/k", json!([["if-none-match", "*"]]), "new").await?;
    same("there is one", (status, body.as_str()), (412, "hello"))?;
    let (status, ..) = ask(lab, "PATCH", "/entry/k", json!([["ttl", "2000"]]), "").await?;
    same("touch", status, 204)?;
    let (status, refused, _) = ask(lab, "POST", "/entry/k", json!([]), "").await?;
    same("a method", (status, &refused["allow"]), (405, &json!("GET, HEAD, PUT, PATCH, DELETE")))?;
    same("a time", ask(lab, "PUT", "/entry/k", json!([["ttl", "NaN"]]), "x").await?.0, 400)?;
    lab.advance(Duration::from_millis(2_050)).await?;
    same("expired", ask(lab, "GET", "/entry/k", json!([]), "").await?.0, 404)?;
    let (status, head, _) = ask(lab, "HEAD", "/entry/k", json!([]), "").await?;
    same("expired", (status, &head["refused"]), (404, &json!("absent")))
}

async fn keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    let paths =
        ["/entry/", "/entry?key=.", "/entry?key=..", "/entry/a%2Fb", "/entry/%00%F0%9F%98%80", "/entry/a+b"];
    for path in paths {
        same(path, ask(lab, "PUT", path, json!([]), path).await?.0, 204)?;
    }
    for path in paths {
        let (status, _, body) = ask(lab, "GET", path, json!([]), "").await?;
        same(path, (status, body.as_str()), (200, path))?;
    }
    let (_, _, listed) = ask(lab, "GET", "/entries", json!([]), "").await?;
    let listed: Value = serde_json::from_str(&listed)?;
    let keys: Vec<_> =
        listed["entries"].as_array().into_iter().flatten().map(|entry| entry["key"].clone()).collect();
    same("all of them", keys, ["", "\0😀", ".", "..", "a+b", "a/b"].map(Value::from).to_vec())
}

async fn stub<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (n, key) in ["k", "", ".", "..", "a/b?c=d&e#f%", "\0\u{e9}\u{10ffff}"].into_iter().enumerate() {
        let path = lab.address("/cache", &format!("stub {n}"));
        let did = lab.value(&path, &json!([{ "stub": key }])).await?;
        let expected = json!([{
            "absent": true, "same": true, "there": [true, true], "listed": true, "many": [true, false],
            "present": true, "swapped": [true, true], "taken": "2", "puts": 2, "removed": [true, 1, 0], "count": 0,
            "counted": 4,
        }]);
        holds(format!("{key:?} gave {did}"), did == expected)?;
    }
    Ok(())
}
