//! A derived engine says only what is its own: the rest is taken from the one on which it is built.

use super::Descriptor;

/// Fills what heads leave out. A parent's parent is not followed: none has one.
pub(super) fn fill(all: &mut [Descriptor]) {
    let heads = all.to_vec();
    for d in all {
        let Some(parent) = heads.iter().find(|p| Some(&p.id) == d.parent.as_ref()) else { continue };
        let Descriptor { flags, step, printed, advice, .. } = parent;
        list(&mut d.flags.share, &flags.share);
        list(&mut d.flags.tensor_parallel, &flags.tensor_parallel);
        list(&mut d.flags.length, &flags.length);
        list(&mut d.flags.batch, &flags.batch);
        list(&mut d.flags.layers, &flags.layers);
        list(&mut d.flags.micro_batch, &flags.micro_batch);
        d.flags.kv_type = d.flags.kv_type.take().or_else(|| flags.kv_type.clone());
        d.step = d.step.take().or_else(|| step.clone());
        list(&mut d.printed.weights, &printed.weights);
        list(&mut d.advice.load, &advice.load);
        list(&mut d.advice.runtime, &advice.runtime);
        list(&mut d.advice.pool_start, &advice.pool_start);
        list(&mut d.advice.reload, &advice.reload);
        list(&mut d.advice.pool, &advice.pool);
        d.native |= parent.native;
        d.retries_load |= parent.retries_load;
        d.plan = d.plan.take().or_else(|| parent.plan.clone());
        // A worker of the parent's make may print its name.
        for p in &parent.processes {
            if !d.processes.contains(p) {
                d.processes.push(p.clone());
            }
        }
    }
}

fn list<T: Clone>(own: &mut Vec<T>, parent: &[T]) {
    if own.is_empty() {
        own.extend_from_slice(parent);
    }
}
