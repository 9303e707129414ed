"""Writes due_dates.csv: the due date of each payment day in each month of 2024 to 2028, computed by Python's calendar.

Run this script again only to add years: python3 due_dates.py > due_dates.csv
"""

import calendar

print("month," + ",".join(str(day) for day in range(1, 32)))
for year in range(2024, 2029):
    for month in range(1, 13):
        last = calendar.monthrange(year, month)[1]
        print(f"{year}-{month:02}," + ",".join(f"{year}-{month:02}-{min(day, last):02}" for day in range(1, 32)))
