//! Compares the due dates that `billing` computes with a table of due dates that an independent Python script generated
//! (`tests/story/data/due_dates.py`).

use billing::{PaymentDay, Period};

#[test]
fn due_dates_match_an_independent_table_for_2024_to_2028() {
    let table = include_str!("data/due_dates.csv");
    let mut months = 0;
    for line in table.lines().skip(1) {
        let mut cells = line.split(',');
        let period: Period = cells.next().unwrap().parse().unwrap();
        for (day, expected) in (1..).zip(cells) {
            let due_on = PaymentDay::try_from(day).unwrap().due_in(period);
            assert_eq!(due_on.to_string(), expected, "payment day {day} in {period}");
        }
        months += 1;
    }
    assert_eq!(months, 60);
}
