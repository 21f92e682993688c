//! What was measured, and on what: cards, machine, command line, and the results of a load tool.

use std::fs;
use std::path::Path;

use dualplane_core::redact;
use dualplane_gate::document::{Gpu, Hardware, Measure, Run};
use dualplane_node::gpu::{Device, Fake, Gpus, Nvml, of_machine};
use dualplane_runs::tools::Results;

use crate::args::MeasureArgs;
use crate::commands::Failure;
use crate::own_knowledge;

pub(super) fn gpus(args: &MeasureArgs) -> Result<Option<Box<dyn Gpus>>, Failure> {
    let Some(path) = &args.gpu_table else {
        return Ok(Some(of_machine(Nvml::boxed(None), Path::new("/sys"))));
    };
    let text =
        fs::read_to_string(path).map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
    let fake =
        Fake::from_json(&text).map_err(|e| Failure::Flag { flag: "--gpu-table", why: e.to_string() })?;
    Ok(Some(Box::new(fake)))
}

pub(super) fn hardware(proc_root: &Path, gpus: Option<&mut Box<dyn Gpus>>) -> Hardware {
    let text = |path: &str| fs::read_to_string(proc_root.join(path)).unwrap_or_default();
    let cpu = text("cpuinfo");
    let name = cpu.lines().find_map(|l| l.strip_prefix("model name")).and_then(|l| l.split_once(':'));
    let ram = text("meminfo")
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let mut hardware = Hardware {
        cpu: name.map(|(_, n)| n.trim().to_owned()),
        cpus: Some(cpu.lines().filter(|l| l.starts_with("processor")).count() as u32).filter(|n| *n > 0),
        ram_bytes: ram.map(|kb| kb * 1024),
        kernel: Some(text("sys/kernel/osrelease").trim().to_owned()).filter(|k| !k.is_empty()),
        ..Hardware::default()
    };
    if let Some(gpus) = gpus {
        let mut devices: Vec<Device> = Vec::new();
        let mut readings = Vec::new();
        if gpus.devices(&mut devices).is_ok() {
            gpus.read(&mut readings);
            let total =
                |i: usize| readings.iter().find(|r| usize::from(r.device.0) == i).and_then(|r| r.total);
            let of = |(i, d): (usize, &Device)| Gpu {
                name: d.name.clone(),
                memory_bytes: total(i).map(|b| b.0),
                mig: d.profile().map(str::to_owned),
            };
            hardware.gpus = Some(devices.iter().enumerate().map(of).collect());
            hardware.gpu_driver = gpus.driver().version;
        } else if !Path::new("/dev/nvidiactl").exists() {
            // No driver and no device: there is no card.
            hardware.gpus = Some(Vec::new());
        }
    }
    hardware
}

/// The command line of the server, without secrets.
pub(super) fn subject(m: &mut Measure, args: &MeasureArgs, pid: Option<u32>) {
    m.subject.workload = args.pod.clone();
    let of_pid = pid.and_then(|p| fs::read(format!("/proc/{p}/cmdline")).ok()).map(|line| {
        let words = line.split(|b| *b == 0).filter(|w| !w.is_empty());
        words.map(|w| String::from_utf8_lossy(w).into_owned()).collect::<Vec<_>>().join(" ")
    });
    let Some(line) = args.serve.clone().or(of_pid).filter(|l| !l.is_empty()) else { return };
    if let Ok(knowledge) = own_knowledge::load(None) {
        m.subject.command = redact::line(&line, &knowledge).split_whitespace().map(str::to_owned).collect();
    }
}

/// What a load tool measured becomes the run's.
pub(super) fn results(m: &mut Measure, run: &mut Run, r: Results) {
    let version = r.version.map_or_else(String::new, |v| format!(" {v}"));
    m.tool.load_tool = Some(format!("{}{version}", r.tool));
    m.subject.model = m.subject.model.take().or(r.model);
    run.ttft = r.ttft;
    run.itl = r.itl;
    run.e2e = r.e2e;
    run.requests = r.requests;
    run.throughput = r.throughput;
    run.load.concurrency = r.concurrency;
    if let Some(seconds) = r.seconds {
        run.measured_seconds = seconds;
    }
}
