//! Recorded incidents, so that a newcomer sees something at once. Their evidence is real; their times are moved into the last
//! two weeks, and some are repeated as a crash loop would.

use std::sync::Arc;

use dualplane_incidents::{Time, Where, of_report};

use crate::app::{App, now, pack};
use crate::auth::sha256;
use crate::ingest::judge::Judged;
use crate::serve::ServeError;
use crate::store::{BundleRow, Death};

/// Files of an incident by their names.
type Files = &'static [(&'static str, &'static [u8])];

/// The names of incidents, with their files.
const RECORDED: &[(&str, Files)] = include!(concat!(env!("OUT_DIR"), "/demo.rs"));
/// How often each died, in turn.
const TIMES: &[i64] = &[1, 3, 1, 9, 2, 1, 5];
/// Between two deaths of a loop, and between two incidents.
const LOOP_MS: i64 = 47 * 60_000;
const APART_MS: i64 = 15 * 3_600_000;

/// Keeps all of them; answers how many deaths that were.
///
/// # Errors
///
/// Where the store or the disk does not take them.
pub async fn fill(app: &Arc<App>) -> Result<usize, ServeError> {
    let said = |e: String| ServeError::Said(format!("the demo: {e}"));
    let mut deaths = 0;
    for (n, (name, files)) in RECORDED.iter().enumerate() {
        let id = format!("demo-{name}");
        let part =
            app.bundles.part("demo", &id).ok_or_else(|| said("it is filled twice at once".to_owned()))?;
        part.discard();
        let archive = archive(files)?;
        part.append(&archive)?;
        let found = app.judge.judge(part.path().to_owned(), Where::default()).await.map_err(said)?;
        let row = BundleRow { size: archive.len() as u64, sha256: sha256(&archive) };
        app.bundles.finish(&part, &id).await?;
        let step = i64::try_from(n).unwrap_or(0);
        let times = TIMES.get(n % TIMES.len()).copied().unwrap_or(1);
        let last = now().ms() - step * APART_MS - 7 * 60_000;
        for (m, judged) in found.iter().enumerate() {
            for k in 0..times {
                let id = if (m, k) == (0, 0) { id.clone() } else { format!("{id}.{m}.{k}") };
                let death = death(&id, judged, Time::from_ms(last - k * LOOP_MS)).map_err(said)?;
                app.ingest.keep(death).await.map_err(|e| said(e.to_string()))?;
                deaths += 1;
            }
        }
        app.store.put_bundle(id, row).await?;
    }
    Ok(deaths)
}

fn death(id: &str, judged: &Judged, died_at: Time) -> Result<Death, String> {
    let place = Where { cluster: Some("demo".to_owned()), died_at: Some(died_at), ..judged.place.clone() };
    let incident = of_report(id, &judged.report, &place, now()).map_err(|e| e.to_string())?;
    let report = serde_json::to_vec(&judged.report).map_err(|e| e.to_string())?;
    Ok(Death { incident, report: pack(&report), digest: sha256(id.as_bytes()), sender: "demo".to_owned() })
}

fn archive(files: Files) -> Result<Vec<u8>, ServeError> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, name, *bytes)?;
    }
    Ok(tar.into_inner()?.finish()?)
}
