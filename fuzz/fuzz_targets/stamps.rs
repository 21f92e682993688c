//! Time stamps in all forms.
#![no_main]

use dualplane_base::time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let line = String::from_utf8_lossy(data);
    let near = time::parse_rfc3339("2026-06-18T09:10:00Z");
    let boot = time::parse_boot_prefix(&line).map(|(s, _)| s);
    for stamp in [time::find_stamp(&line), boot, time::parse_rfc3339(&line)].into_iter().flatten() {
        assert!(!stamp.show().is_empty());
        assert_eq!(stamp.ms_until(stamp), Some(0));
        let dated = stamp.with_year_near(near);
        let Some(near) = near else { return };
        let plain = dated.without_zone(near);
        if plain != dated {
            // What a zone explains agrees within two minutes afterwards, and a second look changes nothing.
            assert!(plain.ms_until(near).is_some_and(|ms| ms.abs() <= 120_000));
            assert_eq!(plain.without_zone(near), plain);
        }
    }
});
