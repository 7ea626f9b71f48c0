//! The name of a matrix, graph or chain that all ranks make or read together.

use crate::engine::origin::Origin;
use crate::observe::Meter;
use std::ffi::OsStr;
use std::time::Instant;

/// A name that all ranks open together; see [`RankMatrix::open`](super::RankMatrix::open).
#[derive(Clone, Copy, Debug)]
pub struct RankSource<'a> {
    pub(super) what: &'a OsStr,
    pub(super) meter: Option<&'a Meter>,
    /// When it was named; the seconds of loading count from here.
    began: Instant,
}

impl<'a> RankSource<'a> {
    /// Lets the meter of the first rank count the bytes of a text file.
    pub(crate) fn metered(what: &'a OsStr, meter: &'a Meter) -> RankSource<'a> {
        RankSource { meter: Some(meter), ..RankSource::from(what) }
    }

    /// Returns the origin of what the ranks have now.
    pub(super) fn origin(&self) -> Origin {
        Origin::read_since(self.began, self.what)
    }
}

impl<'a> From<&'a OsStr> for RankSource<'a> {
    fn from(what: &'a OsStr) -> RankSource<'a> {
        RankSource { what, meter: None, began: Instant::now() }
    }
}
