//! The engine's stream: each change once, in its order, over restarts; and what was followed takes no room.

use chrono::TimeDelta;
use emulator::Engine;
use serde_json::Value;
use store::Table;
use testkit::sample;

fn sequences(batch: &Value) -> Vec<String> {
    let records = batch["Records"].as_array().unwrap().iter();
    records.map(|record| record["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned()).collect()
}

async fn table(engine: &Engine) -> Table {
    let table = Table::new(engine.client(), "dueday", TimeDelta::days(190));
    table.create_if_absent().await.unwrap();
    table
}

#[tokio::test]
async fn stream_tells_each_change_with_both_images_and_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.sqlite");
    let before = {
        let engine = Engine::open(&file).unwrap();
        let (table, stream) = (table(&engine).await, engine.stream("dueday").unwrap());
        table.put_account(&sample::account()).await.unwrap();
        let renamed = billing::Account { name: "Bell".parse().unwrap(), ..sample::account() };
        table.put_account(&renamed).await.unwrap();
        let batch = stream.after(None, 10).unwrap();
        let records = batch["Records"].as_array().unwrap();
        let names: Vec<_> = records.iter().map(|record| record["eventName"].as_str().unwrap()).collect();
        assert_eq!(names, ["INSERT", "MODIFY"]);
        let image = |name: &str| records[1]["dynamodb"][name]["Name"]["S"].as_str().unwrap();
        assert_eq!((image("OldImage"), image("NewImage")), ("Acme", "Bell"));
        assert_eq!(records[0]["dynamodb"].get("OldImage"), None);
        assert_eq!(sequences(&stream.after(Some(&sequences(&batch)[0]), 10).unwrap()), sequences(&batch)[1..]);
        sequences(&batch)
    };
    let engine = Engine::open(&file).unwrap();
    let (table, stream) = (table(&engine).await, engine.stream("dueday").unwrap());
    assert_eq!(sequences(&stream.after(None, 10).unwrap()), before);
    table.put_account(&sample::account()).await.unwrap();
    let last = sequences(&stream.after(Some(&before[1]), 10).unwrap());
    assert!(last.len() == 1 && last[0] > before[1], "{last:?}");
}

#[tokio::test]
async fn trimmed_records_are_gone_and_the_newest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(&folder.path().join("engine.sqlite")).unwrap();
    let (table, stream) = (table(&engine).await, engine.stream("dueday").unwrap());
    for n in 0..5 {
        let account = billing::Account { id: format!("a{n}").parse().unwrap(), ..sample::account() };
        table.put_account(&account).await.unwrap();
    }
    let all = sequences(&stream.after(None, 10).unwrap());
    assert_eq!((stream.trim(&all[1]).unwrap(), sequences(&stream.after(None, 10).unwrap())), (2, all[2..].to_vec()));
    assert_eq!((stream.trim(&all[4]).unwrap(), sequences(&stream.after(None, 10).unwrap())), (2, all[4..].to_vec()));
    table.put_account(&sample::account()).await.unwrap();
    let next = sequences(&stream.after(Some(&all[4]), 10).unwrap());
    assert!(next.len() == 1 && next[0] > all[4], "numbers rise although records were removed");
}

#[tokio::test]
async fn stream_of_a_file_costs_a_write_no_search_among_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.sqlite");
    let engine = Engine::open(&file).unwrap();
    table(&engine).await;
    engine.stream("dueday").unwrap();
    let connection = rusqlite::Connection::open(&file).unwrap();
    // The two searches of the engine: the number of the next record, and the records after one.
    for search in [
        "SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = ?1",
        "SELECT id FROM _stream_records WHERE table_name = ?1 AND shard_id = ?2 AND CAST(sequence_number AS INTEGER) > ?3
            ORDER BY CAST(sequence_number AS INTEGER) ASC LIMIT ?4",
    ] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {search}")).unwrap();
        let unbound = vec![rusqlite::types::Null; statement.parameter_count()];
        let plan = statement.query_map(rusqlite::params_from_iter(unbound), |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<_> = plan.map(Result::unwrap).collect();
        assert!(plan.len() == 1 && plan[0].contains("INDEX _dueday_stream_records (table_name=?"), "{plan:?}");
    }
}
