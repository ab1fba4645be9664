//! A: names, ids, and what an object sees of them.

use crate::{
    limits,
    testing::{
        case::{Case, Fault, Outcome, holds, same},
        difference::HostKind,
        driver::Driver,
        lab::Lab,
        route::percent_encoded,
        tasks::both,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("a1 a name is always the same object", |lab| Box::pin(a1_same(lab))),
        Case::new("a1 the text of an id is 64 lower-case hex digits", |lab| Box::pin(a1_digits(lab))),
        Case::new("a1 the id of a name is the same after a restart", |lab| Box::pin(a1_restart(lab)))
            .crashes(),
        Case::new("a1 names that differ in case are two objects", |lab| Box::pin(a1_other(lab, &["A"]))),
        Case::new("a1 names that differ in Unicode form are two objects", |lab| {
            Box::pin(a1_other(lab, &["\u{e1}", "a\u{301}"]))
        }),
        Case::new("a1 blanks around a name belong to it", |lab| {
            Box::pin(a1_other(lab, &["a ", " a", "a\n", "a\u{a0}"]))
        }),
        Case::new("a1 a NUL and what follows it belong to a name", |lab| {
            Box::pin(a1_other(lab, &["a\0", "a\0b", "\0a"]))
        }),
        Case::new("a1 a name with slashes, dots and signs is like any other", |lab| {
            Box::pin(a1_other(lab, &["a/", "../a", "a?b#c", "%61", "\u{1f980}"]))
        }),
        Case::new("a1 the same name in another namespace is another object", |lab| {
            Box::pin(a1_namespaces(lab))
        }),
        Case::new("a2 the empty name is a name", |lab| Box::pin(a2_empty(lab))),
        Case::new("a2 words that mean nothing elsewhere are names", |lab| Box::pin(a2_words(lab))),
        Case::new("a3 a unique id is new each time", |lab| Box::pin(a3_new(lab))),
        Case::new("a3 an object with a unique id has no name", |lab| Box::pin(a3_nameless(lab))),
        Case::new("a3 a unique id reaches its object again after a restart", |lab| Box::pin(a3_restart(lab)))
            .crashes(),
        Case::new("a4 an id is read from text in either case", |lab| Box::pin(a4_text(lab))),
        Case::new("a4 an id from text has no name", |lab| Box::pin(a4_nameless(lab))),
        Case::new("a5 text that is not 64 hex digits is no id", |lab| Box::pin(a5_malformed(lab))),
        Case::new("a5 an id with a wrong check value is refused", |lab| Box::pin(a5_damaged(lab))),
        Case::new("a5 the text of another namespace's id is refused", |lab| Box::pin(a5_foreign(lab))),
        Case::new("a6 another namespace's id reaches nobody here", |lab| Box::pin(a6_foreign(lab))),
        Case::new("a7 a name and its id lead to the same object", |lab| Box::pin(a7_same(lab))),
        Case::new("a7 a stub has the id of its object", |lab| Box::pin(a7_stub(lab))),
        Case::new("a8 ids are equal by their bytes, with and without the name", |lab| {
            Box::pin(a8_equal(lab))
        }),
        Case::new("a9 the object has the name that the first caller came by", |lab| Box::pin(a9_first(lab))),
        Case::new("a9 the object has no name as long as its first caller came by id", |lab| {
            Box::pin(a9_by_id(lab))
        }),
        Case::new("a9 the next instance has the name that its own first caller came by", |lab| {
            Box::pin(a9_next(lab))
        })
        .evicts()
        .differs(&[HostKind::Kit, HostKind::Tokio], "name-of-instance"),
        Case::new("a9 a name of 1,024 bytes is kept", |lab| Box::pin(a9_longest(lab))),
        Case::new("a9 a name of 1,025 bytes is refused", |lab| Box::pin(a9_long(lab))),
        Case::new("a9 the length of a name is counted in bytes", |lab| Box::pin(a9_bytes(lab))),
        Case::new("a11 a stub that is not used constructs nothing", |lab| Box::pin(a11_stub(lab))).evicts(),
        Case::new("a12 an address without scheme and host is completed from Host", |lab| {
            Box::pin(a12_origin(lab))
        }),
        Case::new("a12 a complete address arrives as it is", |lab| Box::pin(a12_complete(lab))),
        Case::new("a12 the entry's request has a complete address in the object", |lab| {
            Box::pin(a12_entry(lab))
        }),
        Case::new("a12 a Host that is none is refused", |lab| Box::pin(a12_wrong(lab))),
        Case::new("a13 calls of the entry on one stub arrive in their order", |lab| Box::pin(a13_entry(lab))),
        Case::new("a13 calls of an object on one stub arrive in their order", |lab| {
            Box::pin(a13_object(lab))
        }),
        Case::new("a13 calls to an object that is not in memory arrive in their order", |lab| {
            Box::pin(a13_asleep(lab))
        })
        .evicts(),
        Case::new("a14 what one object keeps in memory no other one sees", |lab| Box::pin(a14_memory(lab))),
        Case::new("a14 a thread-local of the program is seen by every object", |lab| {
            Box::pin(a14_global(lab))
        })
        .differs(&[HostKind::Workerd], "globals"),
    ]
}

async fn id_of<D: Driver>(lab: &Lab<D>, object: &str) -> Result<String, Fault> {
    text(lab, &lab.path("id", object)).await
}

async fn text<D: Driver>(lab: &Lab<D>, path: &str) -> Result<String, Fault> {
    Ok(serde_json::from_value(lab.value(path, &Value::Null).await?)?)
}

/// Runs steps in the object with this id.
async fn by_id<D: Driver>(lab: &Lab<D>, id: &str, steps: Value) -> Result<Value, Fault> {
    lab.value(&format!("/run-id/PROBE/{id}"), &steps).await
}

/// A step that marks an object, and one that sees the mark.
fn mark() -> Value {
    json!({"sql": "INSERT INTO n VALUES (7)"})
}

fn marks() -> Value {
    json!({"sql": "SELECT n FROM n"})
}

async fn a1_same<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = lab.run("a", json!([mark(), "id", "name"])).await?;
    let id = id_of(lab, "a").await?;
    same("the id inside", &first[1], json!(id))?;
    same("the name inside", &first[2], json!(lab.name("a")))?;
    same("the id once more", id_of(lab, "a").await?, id)?;
    same("the same name again", lab.last("a", json!([marks()])).await?, json!([7]))
}

async fn a1_digits<D: Driver>(lab: &Lab<D>) -> Outcome {
    for id in [id_of(lab, "a").await?, id_of(lab, "\u{1f980}").await?, text(lab, "/unique/PROBE/").await?] {
        let digits = id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        holds(format!("{id} is not 64 lower-case hex digits"), id.len() == 64 && digits)?;
    }
    Ok(())
}

async fn a1_restart<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    lab.run("a", json!([mark()])).await?;
    lab.crash().await?;
    same("the id", id_of(lab, "a").await?, &id)?;
    same("the id inside", lab.run("a", json!(["id", marks()])).await?, json!([id, [7]]))
}

async fn a1_other<D: Driver>(lab: &Lab<D>, others: &[&str]) -> Outcome {
    lab.run("a", json!([mark()])).await?;
    let mut ids = vec![id_of(lab, "a").await?];
    for other in others {
        let id = id_of(lab, other).await?;
        holds(format!("{other:?} has another id"), !ids.contains(&id))?;
        let seen = lab.run(other, json!([marks(), "name", "id", mark()])).await?;
        same(&format!("{other:?} is another object"), &seen[..3], json!([[], lab.name(other), id]))?;
        ids.push(id);
    }
    same("what each was written", lab.last("a", json!([marks()])).await?, json!([7]))
}

async fn a1_namespaces<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([mark()])).await?;
    let name = percent_encoded(&lab.name("a"));
    let other = lab.value(&format!("/run/OTHER/{name}"), &json!([marks(), "name", "id"])).await?;
    same("what it sees", [&other[0], &other[1]], json!([[], lab.name("a")]))?;
    holds("the ids are equal", other[2] != json!(id_of(lab, "a").await?))?;
    same("its id", &other[2], text(lab, &format!("/id/OTHER/{name}")).await?)
}

async fn a2_empty<D: Driver>(lab: &Lab<D>) -> Outcome {
    // In the other namespace, where no other case has it.
    let id = text(lab, "/id/OTHER/").await?;
    same("what it sees", lab.value("/run/OTHER/", &json!(["name", "id"])).await?, json!(["", id]))
}

async fn a2_words<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ids = vec![text(lab, "/id/OTHER/").await?];
    for word in ["null", "undefined", "0", "[object%20Object]", "__proto__"] {
        let id = text(lab, &format!("/id/OTHER/{word}")).await?;
        holds(format!("{word} has an id of its own"), !ids.contains(&id))?;
        let seen = lab.value(&format!("/run/OTHER/{word}"), &json!(["name"])).await?;
        same(word, seen, json!([word.replace("%20", " ")]))?;
        ids.push(id);
    }
    Ok(())
}

async fn a3_new<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ids = Vec::new();
    for _ in 0..20 {
        let id = text(lab, "/unique/PROBE/").await?;
        holds(format!("{id} was given twice"), !ids.contains(&id))?;
        ids.push(id);
    }
    Ok(())
}

async fn a3_nameless<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = text(lab, "/unique/PROBE/").await?;
    same("what the object sees", by_id(lab, &id, json!(["id", "name"])).await?, json!([id, null]))
}

async fn a3_restart<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = text(lab, "/unique/PROBE/").await?;
    by_id(lab, &id, json!([mark()])).await?;
    lab.crash().await?;
    same("what it holds", by_id(lab, &id, json!([marks(), "id"])).await?, json!([[7], id]))
}

async fn a4_text<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    lab.run("a", json!([mark()])).await?;
    let mixed: String =
        id.chars().enumerate().map(|(n, c)| if n % 2 == 0 { c.to_ascii_uppercase() } else { c }).collect();
    for text in [id.clone(), id.to_uppercase(), mixed] {
        same(&text, by_id(lab, &text, json!([marks(), "id"])).await?, json!([[7], id]))?;
    }
    Ok(())
}

async fn a4_nameless<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    same("its name", by_id(lab, &id, json!(["name", "id"])).await?, json!([null, id]))
}

async fn refused_id<D: Driver>(lab: &Lab<D>, text: &str) -> Outcome {
    match lab.ask(&format!("/run-id/PROBE/{text}"), &json!([])).await? {
        Ok(values) => Err(Fault::new(format!("{text:?} reached an object: {values}"))),
        Err(thrown) => same(
            &format!("the error for {text:?}"),
            (thrown.kind.as_str(), thrown.remote, thrown.retryable, thrown.indefinite),
            ("Invalid", false, false, false),
        ),
    }
}

async fn a5_malformed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    let wrong = [
        String::new(),
        id[..63].to_owned(),
        format!("{id}0"),
        "z".repeat(64),
        format!("0x{}", &id[2..]),
        format!("%20{}", &id[1..]),
        percent_encoded(&"\u{e9}".repeat(32)),
    ];
    for text in wrong {
        refused_id(lab, &text).await?;
    }
    Ok(())
}

async fn a5_damaged<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    for at in [0, 31, 32, 63] {
        let digit = if id[at..=at] == *"0" { "1" } else { "0" };
        refused_id(lab, &format!("{}{digit}{}", &id[..at], &id[at + 1..])).await?;
    }
    refused_id(lab, &"0".repeat(64)).await
}

async fn a5_foreign<D: Driver>(lab: &Lab<D>) -> Outcome {
    let other = text(lab, &format!("/id/OTHER/{}", percent_encoded(&lab.name("a")))).await?;
    refused_id(lab, &other).await?;
    refused_id(lab, &text(lab, "/unique/OTHER/").await?).await
}

async fn a6_foreign<D: Driver>(lab: &Lab<D>) -> Outcome {
    let stub = json!({"life": {"foreign_stub": ["OTHER", lab.name("a")]}});
    let refused = lab.last("b", json!([{"try": [stub]}])).await?;
    same("the kind", &refused["error"]["kind"], "Invalid")?;
    let own = json!({"life": {"foreign_stub": ["PROBE", lab.name("a")]}});
    same("of its own namespace", lab.last("b", json!([own])).await?, id_of(lab, "a").await?)
}

async fn a7_same<D: Driver>(lab: &Lab<D>) -> Outcome {
    let instance = lab.last("a", json!([{"add": 5}, "instance"])).await?;
    let id = id_of(lab, "a").await?;
    let seen = by_id(lab, &id, json!([{"add": 1}, "instance", "name"])).await?;
    same("by id", seen, json!([6, instance, lab.name("a")]))?;
    same("by name", lab.run("a", json!([{"add": 1}, "instance"])).await?, json!([7, instance]))
}

async fn a7_stub<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = lab.last("b", json!([{"life": {"stub": lab.name("a")}}])).await?;
    same("the id", id, id_of(lab, "a").await?)
}

async fn a8_equal<D: Driver>(lab: &Lab<D>) -> Outcome {
    let ids = |other: &str| json!([{"life": {"equal_ids": [lab.name("a"), lab.name(other)]}}]);
    // Each with its name and read from its text: equal, hashed equally, in the same place.
    same("one", lab.last("x", ids("a")).await?, [[true, true, true]; 4])?;
    same("two", lab.last("x", ids("b")).await?, [[false, false, false]; 4])
}

async fn a9_first<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("by name", lab.last("a", json!(["name"])).await?, json!(lab.name("a")))?;
    let id = id_of(lab, "a").await?;
    same("by id, later", by_id(lab, &id, json!(["name"])).await?, json!([lab.name("a")]))
}

async fn a9_by_id<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "b").await?;
    same("by id", by_id(lab, &id, json!(["name"])).await?, json!([null]))?;
    same("by name, later", lab.last("b", json!(["name"])).await?, Value::Null)
}

async fn a9_next<D: Driver>(lab: &Lab<D>) -> Outcome {
    let id = id_of(lab, "a").await?;
    by_id(lab, &id, json!([mark()])).await?;
    lab.evict().await?;
    same("by name", lab.run("a", json!(["name", marks()])).await?, json!([lab.name("a"), [7]]))?;
    lab.evict().await?;
    same("by id", by_id(lab, &id, json!(["name", marks()])).await?, json!([null, [7]]))
}

/// As long as to make a name of so many bytes.
fn filled<D: Driver>(lab: &Lab<D>, with: &str, bytes: usize) -> String {
    let rest = bytes - lab.name("").len();
    format!("{}{}", "x".repeat(rest % with.len()), with.repeat(rest / with.len()))
}

async fn a9_longest<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = filled(lab, "x", limits::OBJECT_NAME_BYTES);
    same("its name", lab.last(&longest, json!(["name", mark(), "name"])).await?, json!(lab.name(&longest)))?;
    same("again", lab.last(&longest, json!([marks()])).await?, json!([7]))
}

async fn a9_long<D: Driver>(lab: &Lab<D>) -> Outcome {
    let thrown = lab.thrown(&filled(lab, "x", limits::OBJECT_NAME_BYTES + 1), json!([])).await?;
    let what = format!("{thrown:?}");
    same(&what, (thrown.kind, thrown.remote, thrown.retryable), ("Limit", false, false))?;
    same("the text", thrown.message, "object name is 1025 bytes long, the limit is 1024")
}

async fn a9_bytes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = filled(lab, "\u{20ac}", limits::OBJECT_NAME_BYTES);
    same("its name", lab.last(&longest, json!(["name"])).await?, json!(lab.name(&longest)))?;
    let thrown = lab.thrown(&filled(lab, "\u{20ac}", limits::OBJECT_NAME_BYTES + 1), json!([])).await?;
    same("the kind", thrown.kind, "Limit")
}

async fn a11_stub<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"note": "made"}]}])).await?;
    lab.evict().await?;
    id_of(lab, "a").await?;
    let id = json!({"life": {"foreign_stub": ["PROBE", lab.name("a")]}});
    lab.run("b", json!([{"life": {"stub": lab.name("a")}}, id])).await?;
    lab.advance(Duration::from_millis(50)).await?;
    let before = lab.last("b", json!(["now"])).await?.as_i64();
    lab.advance(Duration::from_millis(50)).await?;
    let made = lab.run("a", json!(["boots", "log"])).await?;
    same("constructions", &made[0], 2)?;
    let at = made[1][0]["at"].as_i64();
    holds(format!("made at {at:?}, the stub before {before:?}"), at.is_some() && at > before)
}

async fn called_at<D: Driver>(lab: &Lab<D>, uri: &str, host: Option<&str>) -> Result<Value, Fault> {
    let call = json!({"life": {"call_at": [lab.name("a"), uri, host, ["uri"]]}});
    lab.last("b", json!([{"try": [call]}])).await
}

async fn a12_origin<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cases = [
        ("/x/y?z=1", Some("example.com"), "http://example.com/x/y?z=1"),
        ("/", Some("example.com:8080"), "http://example.com:8080/"),
        ("/x?", Some("[::1]:80"), "http://[::1]/x?"),
        ("/x", None, "http://localhost/x"),
    ];
    for (uri, host, expected) in cases {
        let seen = called_at(lab, uri, host).await?;
        // The default port may be left out, as the WHATWG's URLs do.
        let seen = seen["ok"][0][0].as_str().unwrap_or_default().replace("[::1]:80/", "[::1]/");
        same(&format!("{uri} at {host:?}"), seen, expected)?;
    }
    Ok(())
}

async fn a12_complete<D: Driver>(lab: &Lab<D>) -> Outcome {
    for uri in ["http://example.com/x/y?z=%20", "https://example.com:8443/"] {
        let seen = called_at(lab, uri, Some("elsewhere.example")).await?;
        same(uri, &seen["ok"][0][0], uri)?;
    }
    Ok(())
}

async fn a12_entry<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab.last("a", json!(["uri"])).await?;
    let seen = seen.as_str().unwrap_or_default();
    let path = lab.path("run", "a");
    let complete = seen.strip_prefix("http://").is_some_and(|rest| {
        rest.strip_suffix(path.as_str()).is_some_and(|host| !host.is_empty() && !host.contains('/'))
    });
    holds(format!("{seen} is not http://HOST{path}"), complete)
}

async fn a12_wrong<D: Driver>(lab: &Lab<D>) -> Outcome {
    for host in ["a b", "a/b", "", "exa\u{e4}mple"] {
        let seen = called_at(lab, "/x", Some(host)).await?;
        same(&format!("{host:?}: {seen}"), &seen["error"]["kind"], "Invalid")?;
    }
    same("what arrived", lab.last("a", json!(["boots"])).await?, 1)
}

/// Calls that note their numbers, and what is noted in the end.
fn numbered() -> (Vec<Value>, Vec<String>) {
    let calls = (0..40).map(|n| json!([{"note": n.to_string()}])).collect();
    (calls, (0..40).map(|n| n.to_string()).collect())
}

async fn a13_entry<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (calls, expected) = numbered();
    let answers = lab.value(&lab.path("calls", "a"), &json!(calls)).await?;
    same("their answers", answers, vec![[Value::Null]; 40])?;
    same("their order", lab.lines("a").await?, expected)
}

async fn a13_object<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (calls, expected) = numbered();
    let steps = json!([{"note": "a write before them"}, {"life": {"calls": [lab.name("a"), calls]}}]);
    same("their answers", lab.last("b", steps).await?, vec![[Value::Null]; 40])?;
    same("their order", lab.lines("a").await?, expected)
}

async fn a13_asleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (calls, expected) = numbered();
    lab.run("a", json!([{"on_new": [{"sleep": 50}, {"note": "made"}]}])).await?;
    lab.evict().await?;
    let called = async { lab.value(&lab.path("calls", "a"), &json!(calls)).await };
    let (answers, time) = both(called, lab.advance(Duration::from_millis(200))).await;
    time?;
    same("their answers", answers?, vec![[Value::Null]; 40])?;
    let expected: Vec<_> = ["made".to_owned()].into_iter().chain(expected).collect();
    same("their order", lab.lines("a").await?, expected)
}

async fn a14_memory<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"add": 5}, mark()])).await?;
    same("another one", lab.run("b", json!([{"add": 0}, marks()])).await?, json!([0, []]))?;
    same("it", lab.run("a", json!([{"add": 0}, marks()])).await?, json!([5, [7]]))
}

async fn a14_global<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"life": {"global": 7}}])).await?;
    same("another object", lab.last("b", json!([{"life": {"global": null}}])).await?, 7)
}
