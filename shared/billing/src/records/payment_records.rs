//! The stored records of a subscription's months: paid months, failed attempts, and waived months.

use crate::records::attempt_record::AttemptRecord;
use crate::records::receipt::Receipt;
use crate::records::waived_period::WaivedPeriod;

/// The receipts, failed attempts and waived periods of one subscription.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PaymentRecords {
    pub receipts: Vec<Receipt>,
    /// The failed attempts, ordered by number.
    pub attempts: Vec<AttemptRecord>,
    pub waived: Vec<WaivedPeriod>,
}
