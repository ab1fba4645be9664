use crate::{Invites, route};
use do_core::{
    Secret,
    kit::{Kit, Strike},
    prelude::*,
};
use serde_json::Value;

#[test]
fn the_object_has_at_most_40_lines_of_code() {
    let object = include_str!("../invites.rs").split("#[cfg(test)]").next().unwrap();
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = object.lines().filter(is_code).count();
    assert!(lines <= 40, "{lines}");
}

fn start() -> Kit {
    let key = Secret::new("sesame");
    Kit::builder().secret("ADMIN_KEY", key).object::<Invites<_>>("INVITES").start().unwrap()
}

/// The status and the body; as the admin or as anybody.
async fn ask(kit: &Kit, admin: bool, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut request =
        http::Request::builder().method(method).uri(format!("http://i/events/gala/codes{path}"));
    if admin {
        request = request.header("authorization", "Bearer sesame");
    }
    let response = kit.serve(route, request.body(body.to_owned().into()).unwrap()).await;
    (response.status().as_u16(), response.into_body().text(1 << 20).await.unwrap())
}

async fn create(kit: &Kit, query: &str, note: &str) -> String {
    let (status, code) = ask(kit, true, "POST", query, note).await;
    assert_eq!(status, 201, "{code}");
    code
}

async fn redeem(kit: &Kit, code: &str, guest: &str) -> u16 {
    ask(kit, false, "POST", &format!("/{code}"), guest).await.0
}

async fn list(kit: &Kit) -> Vec<Value> {
    let (status, text) = ask(kit, true, "GET", "", "").await;
    assert_eq!(status, 200);
    let page: Value = serde_json::from_str(&text).unwrap();
    page["codes"].as_array().unwrap().clone()
}

#[test]
fn a_code_is_good_for_one_guest_who_may_ask_again() {
    let kit = start();
    kit.run(async {
        let code = create(&kit, "", "for Ann").await;
        let (listed, until) = (list(&kit).await, kit.now() + Duration::from_secs(86_400));
        assert_eq!(listed.len(), 1);
        let expected = serde_json::json!({"code": code, "note": "for Ann", "guest": null, "expires": until});
        assert_eq!(listed[0], expected);
        assert_eq!(redeem(&kit, &code, "Ann").await, 200);
        assert_eq!(redeem(&kit, &code, "Bob").await, 409);
        assert_eq!(redeem(&kit, &code, "Ann").await, 200);
        assert_eq!(list(&kit).await[0]["guest"], "Ann");
        assert_eq!(ask(&kit, true, "DELETE", &format!("/{code}"), "").await.0, 409, "too late to revoke");
        // Long after it would have expired it is known who came.
        kit.advance(Duration::from_secs(29 * 86_400)).await;
        assert_eq!(list(&kit).await[0]["guest"], "Ann");
        kit.advance(Duration::from_secs(86_400)).await;
        assert!(list(&kit).await.is_empty());
    });
}

#[test]
fn of_many_who_bring_a_code_at_the_same_time_one_is_let_in() {
    let kit = start();
    kit.run(async {
        let code = create(&kit, "", "").await;
        let guests: Vec<String> = (0..20).map(|n| format!("guest {n}")).collect();
        let asked = guests.iter().map(|guest| redeem(&kit, &code, guest));
        let answers = futures::future::join_all(asked).await;
        assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|status| **status == 409).count(), 19, "{answers:?}");
        let let_in = answers.iter().position(|status| *status == 200).unwrap();
        assert_eq!(list(&kit).await[0]["guest"], guests[let_in].as_str());
    });
}

#[test]
fn whatever_strikes_at_whatever_step_one_guest_has_the_code_and_learns_it() {
    let run = |plan: &dyn Fn(&Kit)| {
        let kit = start();
        kit.run(async {
            let code = create(&kit, "", "").await;
            plan(&kit);
            let ask = async |guest: &str| {
                loop {
                    match redeem(&kit, &code, guest).await {
                        status @ (200 | 409) => break status,
                        // Nobody knows what became of it: it is asked again.
                        status => assert!(status >= 500, "{status}"),
                    }
                }
            };
            let answers = futures::future::join(ask("Ann"), ask("Bob")).await;
            assert!(matches!(answers, (200, 409) | (409, 200)), "{answers:?}");
            let let_in = if answers.0 == 200 { "Ann" } else { "Bob" };
            kit.heal();
            kit.crash();
            assert_eq!(list(&kit).await[0]["guest"], let_in);
        });
        kit.steps()
    };
    let before = {
        let kit = start();
        kit.run(async { drop(create(&kit, "", "").await) });
        kit.steps()
    };
    for step in before..run(&|_| {}) {
        run(&|kit| kit.at_step(step, &Strike::Crash));
        run(&|kit| kit.at_step(step, &Strike::LosePower));
    }
}

#[test]
fn what_is_expired_or_revoked_lets_nobody_in_and_leaves_nothing() {
    let kit = start();
    kit.run(async {
        let (short, long) = (create(&kit, "?minutes=1", "").await, create(&kit, "?minutes=2", "").await);
        kit.advance(Duration::from_millis(59_999)).await;
        assert_eq!(list(&kit).await.len(), 2);
        kit.advance(Duration::from_millis(1)).await;
        assert_eq!(redeem(&kit, &short, "Ann").await, 404, "at its very end");
        assert_eq!(list(&kit).await.len(), 1);
        assert_eq!(ask(&kit, true, "DELETE", &format!("/{long}"), "").await.0, 204);
        assert_eq!(ask(&kit, true, "DELETE", &format!("/{long}"), "").await.0, 404);
        assert_eq!(redeem(&kit, &long, "Ann").await, 404);
        assert!(list(&kit).await.is_empty());
        assert_eq!(redeem(&kit, "0000-0000-0000-0000", "Ann").await, 404);
    });
}

#[test]
fn what_is_no_request_is_refused() {
    let kit = start();
    kit.run(async {
        let code = create(&kit, "", "").await;
        for (admin, method, path, body, status) in [
            (false, "POST", String::new(), "", 401),
            (false, "GET", String::new(), "", 401),
            (false, "DELETE", format!("/{code}"), "", 401),
            (false, "GET", format!("/{code}"), "", 401),
            (false, "POST", "/".to_owned(), "Ann", 404),
            (false, "POST", format!("/{code}"), " ", 400),
            (false, "POST", format!("/{code}/more"), "Ann", 404),
            (true, "PUT", "/my-own-code".to_owned(), "", 405),
            (true, "GET", format!("/{code}"), "", 404),
            (true, "POST", "?minutes=0".to_owned(), "", 400),
            (true, "POST", "?minutes=-1".to_owned(), "", 400),
            (true, "POST", "?minutes=soon".to_owned(), "", 400),
        ] {
            assert_eq!(ask(&kit, admin, method, &path, body).await.0, status, "{method} {path}");
        }
        assert_eq!(redeem(&kit, &code, &"x".repeat(201)).await, 413);
        let other = http::Request::post(format!("http://i/events/other/codes/{code}"));
        assert_eq!(kit.serve(route, other.body("Ann".into()).unwrap()).await.status(), 404);
        let wrong = http::Request::get("http://i/events/gala/codes").header("authorization", "Bearer sesamf");
        assert_eq!(kit.serve(route, wrong.body(Body::empty()).unwrap()).await.status(), 401);
        assert_eq!(redeem(&kit, &code, "Ann").await, 200);
    });
}
