//! The test kit: its column is empty until its driver is there.

use crate::{options::Options, report::Report};

/// Adds the kit's column.
pub(crate) async fn column(report: &mut Report, _options: &Options, asked: bool) {
    let why = "There is no driver for it yet.";
    if asked { report.failed("kit", why) } else { report.skipped("kit", why) }
}
