//! Compares the access patterns that return lists of employees or customers with the naive reader.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};
use orders::Employee;
use orders_table::EmployeeList;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use store::Paging;

use super::{RandomComparisons, all_pages, page_sizes};
use crate::order_desk::world::test_time;

impl RandomComparisons<'_> {
    /// Compares the access patterns 2, 6, 7, 9 and 11, and the list of a department, with random parameters.
    pub async fn compare_people(&mut self) {
        let employee =
            self.naive.employees.values().collect::<Vec<_>>().choose(&mut self.rng).copied().unwrap().clone();
        let warehouse = format!("wh-{}", self.rng.random_range(0..10));
        let representative = format!("e-{}", 10 * self.rng.random_range(0..20));
        let title = *["Picker", "account  MANAGER", "Chief picker"].choose(&mut self.rng).unwrap();
        let hired_after = NaiveDate::from_ymd_opt(2019, 6, 1).unwrap() + Days::new(self.rng.random_range(0..2_000));
        let department = *["sales", "logistics", "office"].choose(&mut self.rng).unwrap();

        let simple = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        let named = self.naive.employees_where(|other| simple(&other.name) == simple(&employee.name));
        let titled = self.naive.employees_where(|other| other.title.as_deref().map(simple) == Some(simple(title)));
        let working = self.naive.employees_where(|other| other.warehouse.as_ref() == Some(&warehouse));
        let of_department = self.naive.employees_where(|other| other.department.as_deref() == Some(department));
        let today = test_time().date_naive().to_string();
        let hired =
            self.naive.employees_where(|other| other.hired_on > hired_after.to_string() && other.hired_on <= today);
        let customers: Vec<String> = self
            .naive
            .customers
            .iter()
            .filter(|(_, of)| of.as_ref() == Some(&representative))
            .map(|(id, _)| id.clone())
            .collect();
        let (table, name) = (self.table, employee.name.to_uppercase());
        let (warehouse_id, department_id) = (warehouse.parse().unwrap(), department.parse().unwrap());
        let representative_id = representative.parse().unwrap();
        for limit in page_sizes(hired.len().max(customers.len())) {
            let found = all_pages(limit, async |paging: Paging| {
                table.list_employees(EmployeeList::WithName(&name), &paging).await
            })
            .await;
            self.assert_current_copies(&found);
            assert_eq!(found.iter().map(|one| one.id.to_string()).collect::<Vec<_>>(), named, "{name}");
            let found = all_pages(limit, async |paging: Paging| {
                table.list_employees(EmployeeList::WithTitle(title), &paging).await
            })
            .await;
            self.assert_current_copies(&found);
            assert_eq!(found.iter().map(|one| one.id.to_string()).collect::<Vec<_>>(), titled, "{title}");
            let found = all_pages(limit, async |paging: Paging| {
                table.list_employees(EmployeeList::OfWarehouse(&warehouse_id), &paging).await
            });
            let found = found.await;
            self.assert_current_copies(&found);
            let found: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
            assert_eq!(found, working, "{warehouse}");
            let found = all_pages(limit, async |paging: Paging| {
                table.list_employees(EmployeeList::OfDepartment(&department_id), &paging).await
            });
            let found = found.await;
            self.assert_current_copies(&found);
            let found: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
            assert_eq!(found, of_department, "{department}");
            let found = all_pages(limit, async |paging: Paging| {
                table
                    .list_employees(
                        EmployeeList::Hired { after: hired_after, today: test_time().date_naive() },
                        &paging,
                    )
                    .await
            });
            let found = found.await;
            self.assert_current_copies(&found);
            let found: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
            assert!(found.is_sorted_by_key(|id| self.naive.employees[id].hired_on.clone()), "{hired_after}");
            assert_eq!((found.len(), BTreeSet::from_iter(found)), (hired.len(), hired.iter().cloned().collect()));
            let found = all_pages(limit, async |paging: Paging| {
                table.customers_of_representative(&representative_id, &paging).await
            });
            let found: Vec<String> = found.await.iter().map(ToString::to_string).collect();
            assert_eq!(found, customers, "{representative}");
        }
        self.count_comparison("employees by name", named.is_empty());
        self.count_comparison("employees by title", titled.is_empty());
        self.count_comparison("employees of a warehouse", working.is_empty());
        self.count_comparison("employees of a department", of_department.is_empty());
        self.count_comparison("employees by hire date", hired.is_empty());
        self.count_comparison("customers of a representative", customers.is_empty());
    }

    /// Asserts that each employee in `found`, the result of an access pattern, has the employee's current data.
    fn assert_current_copies(&self, found: &[Employee]) {
        for Employee { id, name, assignment, .. } in found {
            let naive = &self.naive.employees[&id.to_string()];
            let title = assignment.as_ref().map(|assignment| assignment.job_title.as_str().to_owned());
            let department = assignment.as_ref().map(|assignment| assignment.department.to_string());
            let warehouse =
                assignment.as_ref().and_then(|assignment| assignment.warehouse.as_ref()).map(ToString::to_string);
            assert_eq!(
                (name.as_str(), title, department, warehouse),
                (naive.name.as_str(), naive.title.clone(), naive.department.clone(), naive.warehouse.clone()),
                "{id}"
            );
        }
    }
}
