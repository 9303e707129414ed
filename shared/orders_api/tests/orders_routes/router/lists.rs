//! Lists over several partitions, page by page.

use std::collections::BTreeSet;

use serde_json::json;

use crate::router::world::{World, paid};

/// All pages of the list at `path`, so many items at a time; no page but the last is short.
async fn paged(world: &World, path: &str, limit: usize) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    let and = if path.contains('?') { '&' } else { '?' };
    for _ in 0..200 {
        let page = world.get(&format!("{path}{and}limit={limit}{cursor}")).await;
        let listed = page.listed("id");
        all.extend(listed.iter().cloned());
        match page.json["next_cursor"].as_str() {
            None => return all,
            Some(next) => {
                assert_eq!(listed.len(), limit, "{path}");
                cursor = format!("&cursor={next}");
            }
        }
    }
    panic!("{path} has no end");
}

#[tokio::test]
async fn pages_of_any_size_are_the_list_though_orders_were_paid_at_one_instant() {
    let world = World::new().await;
    world.order(0..23).await;
    for n in [3, 8, 9, 15] {
        let picked = world.ask(&format!("POST /orders/{}/pick", paid(n).order), &json!({})).await;
        assert_eq!(picked.status, 200);
    }
    let mut expected: Vec<_> = (0..23).map(|n| (paid(n).paid_at, paid(n).order.to_string())).collect();
    expected.sort();
    let expected: Vec<String> = expected.into_iter().map(|(_, order)| order).collect();
    let representative = world.get("/customers/acme").await.json["representative"].as_str().unwrap().to_owned();
    for path in [
        "/orders".to_owned(),
        "/customers/acme/orders".to_owned(),
        "/products/beans/orders".to_owned(),
        format!("/employees/{representative}/orders"),
    ] {
        for limit in [1, 2, 3, 4, 5, 7, 22, 23, 24, 100] {
            assert_eq!(paged(&world, &path, limit).await, expected, "{path} by {limit}");
        }
        let picked: BTreeSet<_> = paged(&world, &format!("{path}?status=PICKED"), 3).await.into_iter().collect();
        assert_eq!(picked, [3, 8, 9, 15].map(|n| paid(n).order.to_string()).into(), "{path}");
        assert_eq!(paged(&world, &format!("{path}?to=2027-01-30"), 3).await, Vec::<String>::new(), "{path}");
        assert_eq!(paged(&world, &format!("{path}?from=2027-01-31&to=2027-01-31"), 50).await, expected, "{path}");
    }
}

#[tokio::test]
async fn cursor_beyond_the_last_day_comes_to_an_end() {
    let world = World::new().await;
    world.order(0..3).await;
    let cursor = world.get("/orders?limit=1").await.json["next_cursor"].as_str().unwrap().to_owned();
    for path in ["/orders?to=2027-01-30", "/orders?from=2200-01-01", "/orders?to=1960-01-01"] {
        let page = world.get(&format!("{path}&cursor={cursor}")).await;
        assert_eq!((page.status, page.listed("id").len()), (200, 0), "{path}");
    }
}

#[tokio::test]
async fn goods_and_people_are_listed_page_by_page_and_a_cursor_is_of_its_kind() {
    let world = World::new().await;
    for n in 0..7 {
        assert_eq!(world.ask(&format!("PUT /products/p-{n}"), &json!({"name": format!("P {n}")})).await.status, 201);
    }
    let products = ["beans", "p-0", "p-1", "p-2", "p-3", "p-4", "p-5", "p-6"];
    for limit in [1, 3, 7, 8, 9] {
        assert_eq!(paged(&world, "/products", limit).await, products, "{limit}");
        assert_eq!(paged(&world, "/employees?department=sales-eu", limit).await, ["e-10", "e-11"]);
        assert_eq!(paged(&world, "/employees?hired_after=2026-10-31", limit).await, ["e-10", "e-11"]);
    }
    assert_eq!(paged(&world, "/employees?hired_after=2026-11-01", 5).await, Vec::<String>::new(), "after that day");
    let cursor = world.get("/products?limit=1").await.json["next_cursor"].as_str().unwrap().to_owned();
    let hired =
        world.get("/employees?hired_after=2026-10-31&limit=1").await.json["next_cursor"].as_str().unwrap().to_owned();
    let titled =
        world.get("/employees?department=sales-eu&limit=1").await.json["next_cursor"].as_str().unwrap().to_owned();
    for path in [
        format!("/orders?cursor={cursor}"),
        format!("/employees?department=sales-eu&cursor={hired}"),
        format!("/employees?hired_after=2026-10-31&cursor={titled}"),
    ] {
        let other = world.get(&path).await.problem();
        assert!(other.starts_with("422 refused-field cursor: "), "{path}: {other}");
    }
    for day in ["2027-01-31", "2027-02-01", "2099-01-01", "0001-01-01"] {
        let found = world.get(&format!("/employees?hired_after={day}")).await;
        assert_eq!((found.status, found.listed("id").len()), (200, if day == "0001-01-01" { 2 } else { 0 }), "{day}");
    }
}
