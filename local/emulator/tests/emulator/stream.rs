//! Tests of the engine's stream: the stream contains each change once and in order, also after a restart, and processed
//! records can be deleted from the stream.

use emulator::Engine;
use serde_json::Value;
use store::Table;
use testkit::sample_account;

/// Returns the sequence numbers of the stream records in `batch`.
fn sequence_numbers(batch: &Value) -> Vec<String> {
    let records = batch["Records"].as_array().unwrap().iter();
    records.map(|record| record["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned()).collect()
}

/// Creates the table if it does not exist.
async fn create_table(engine: &Engine) -> Table {
    let table = Table::new(engine.client(), "dueday");
    table.create_if_absent().await.unwrap();
    table
}

#[tokio::test]
async fn stream_contains_each_change_with_both_images_and_continues_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.sqlite");
    let before = {
        let engine = Engine::open(&file).unwrap();
        let (table, stream) = (create_table(&engine).await, engine.stream("dueday").unwrap());
        table.put_account(&sample_account()).await.unwrap();
        let renamed = billing::Account { name: "Bell".parse().unwrap(), ..sample_account() };
        table.put_account(&renamed).await.unwrap();
        let batch = stream.records_after(None, 10).unwrap();
        let records = batch["Records"].as_array().unwrap();
        let names: Vec<_> = records.iter().map(|record| record["eventName"].as_str().unwrap()).collect();
        assert_eq!(names, ["INSERT", "MODIFY"]);
        let image = |name: &str| records[1]["dynamodb"][name]["Name"]["S"].as_str().unwrap();
        assert_eq!((image("OldImage"), image("NewImage")), ("Acme", "Bell"));
        assert_eq!(records[0]["dynamodb"].get("OldImage"), None);
        assert_eq!(
            sequence_numbers(&stream.records_after(Some(&sequence_numbers(&batch)[0]), 10).unwrap()),
            sequence_numbers(&batch)[1..]
        );
        sequence_numbers(&batch)
    };
    let engine = Engine::open(&file).unwrap();
    let (table, stream) = (create_table(&engine).await, engine.stream("dueday").unwrap());
    assert_eq!(sequence_numbers(&stream.records_after(None, 10).unwrap()), before);
    table.put_account(&sample_account()).await.unwrap();
    let last = sequence_numbers(&stream.records_after(Some(&before[1]), 10).unwrap());
    assert!(last.len() == 1 && last[0] > before[1], "{last:?}");
}

#[tokio::test]
async fn trim_deletes_all_stream_records_except_the_newest() {
    let engine = Engine::in_memory();
    let (table, stream) = (create_table(&engine).await, engine.stream("dueday").unwrap());
    for n in 0..5 {
        let account = billing::Account { id: format!("a{n}").parse().unwrap(), ..sample_account() };
        table.put_account(&account).await.unwrap();
    }
    let all = sequence_numbers(&stream.records_after(None, 10).unwrap());
    assert_eq!(
        (stream.delete_records_until(&all[1]).unwrap(), sequence_numbers(&stream.records_after(None, 10).unwrap())),
        (2, all[2..].to_vec())
    );
    assert_eq!(
        (stream.delete_records_until(&all[4]).unwrap(), sequence_numbers(&stream.records_after(None, 10).unwrap())),
        (2, all[4..].to_vec())
    );
    table.put_account(&sample_account()).await.unwrap();
    let next = sequence_numbers(&stream.records_after(Some(&all[4]), 10).unwrap());
    assert!(next.len() == 1 && next[0] > all[4], "sequence numbers still rise after records were deleted");
}

#[tokio::test]
async fn engine_uses_the_index_for_its_searches_in_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.sqlite");
    let engine = Engine::open(&file).unwrap();
    create_table(&engine).await;
    engine.stream("dueday").unwrap();
    let connection = rusqlite::Connection::open(&file).unwrap();
    // The two SQL queries by which the engine computes the next sequence number and reads the records after a sequence
    // number. Both must use the index.
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

#[tokio::test]
async fn copy_of_an_engine_has_the_same_data_and_changes_separately() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Engine::in_memory();
    for engine in [Engine::open(&folder.path().join("engine.sqlite")).unwrap(), memory.copy(), memory] {
        let (table, stream) = (create_table(&engine).await, engine.stream("dueday").unwrap());
        table.put_account(&sample_account()).await.unwrap();
        let copy = engine.copy();
        let (copied, stream_of_copy) = (create_table(&copy).await, copy.stream("dueday").unwrap());
        assert_eq!(copied.get_account(&sample_account().id).await.unwrap(), Some(sample_account()));
        assert_eq!(stream_of_copy.records_after(None, 10).unwrap(), stream.records_after(None, 10).unwrap());
        let renamed = billing::Account { name: "Bell".parse().unwrap(), ..sample_account() };
        copied.put_account(&renamed).await.unwrap();
        drop(engine);
        assert_eq!(table.get_account(&sample_account().id).await.unwrap(), Some(sample_account()));
        assert_eq!(stream_of_copy.records_after(None, 10).unwrap()["Records"].as_array().unwrap().len(), 2);
        assert_eq!(copied.get_account(&renamed.id).await.unwrap().unwrap().name, renamed.name);
    }
}

#[tokio::test]
async fn deleted_item_is_in_no_file_after_its_data_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.sqlite");
    let engine = Engine::open(&file).unwrap();
    let (table, stream) = (create_table(&engine).await, engine.stream("dueday").unwrap());
    let name = "Erasmus of Rotterdam";
    let erased = billing::Account { name: name.parse().unwrap(), ..sample_account() };
    table.put_account(&erased).await.unwrap();
    table.put_account(&billing::Account { name: "Tombstone".parse().unwrap(), ..erased }).await.unwrap();
    let occurrences = || {
        let files =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        let count = |bytes: Vec<u8>| bytes.windows(name.len()).filter(|part| *part == name.as_bytes()).count();
        files.map(count).sum::<usize>()
    };
    assert!(occurrences() > 0, "the stream and the log contain the former item");
    let newest = sequence_numbers(&stream.records_after(None, 10).unwrap()).pop().unwrap();
    stream.delete_records_until(&newest).unwrap();
    engine.remove_deleted_data().unwrap();
    assert_eq!(occurrences(), 0);

    // The table and its stream continue.
    table.put_account(&sample_account()).await.unwrap();
    assert_eq!(sequence_numbers(&stream.records_after(Some(&newest), 10).unwrap()).len(), 1);
}
