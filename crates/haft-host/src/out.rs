//! Where whole outputs are kept: `out://CALL`.
