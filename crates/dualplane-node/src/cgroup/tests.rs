//! Layouts of both generations, both drivers and all runtimes as fixture directories, and a real group where one can be made.

use std::fs;

use dualplane_base::units::Bytes;

use super::*;

const UID: &str = "9ebd9238-4ea3-417e-975f-99e0d23c5718";

fn id(c: char) -> String {
    c.to_string().repeat(64)
}

fn v2(dir: &Path, groups: &[&str]) -> Hierarchy {
    fs::write(dir.join("cgroup.controllers"), "cpuset cpu io memory hugetlb pids\n").unwrap();
    for g in groups {
        let d = dir.join(g.trim_start_matches('/'));
        fs::create_dir_all(&d).unwrap();
        fs::write(d.join("memory.current"), "1048576\n").unwrap();
        fs::write(d.join("memory.max"), "4194304\n").unwrap();
        fs::write(d.join("memory.events"), "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n")
            .unwrap();
        fs::write(
            d.join("memory.stat"),
            "anon 100\nfile 200\nkernel 300\nshmem 50\ninactive_file 120\nactive_file 30\nunevictable 8\npgmajfault 9\n",
        )
        .unwrap();
        fs::write(
            d.join("memory.pressure"),
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=12.34 avg60=0.00 avg300=0.00 total=10\n",
        )
        .unwrap();
    }
    Hierarchy::below(dir).unwrap()
}

#[test]
fn every_layout_of_v2_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let under = UID.replace('-', "_");
    let groups = [
        format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice/cri-containerd-{}.scope",
            id('a')
        ),
        format!("/kubepods.slice/kubepods-pod{under}.slice/crio-{}.scope", id('b')),
        format!("/kubepods/besteffort/pod{UID}/{}", id('c')),
        format!("/system.slice/docker-{}.scope", id('d')),
        format!("/docker/{}", id('e')),
        format!("/machine.slice/libpod-{}.scope", id('f')),
        "/system.slice/vllm.service".to_owned(),
    ];
    let others = [
        format!("/kubepods.slice/kubepods-pod{under}.slice/crio-conmon-{}.scope", id('b')),
        "/system.slice/ssh.service".to_owned(),
        "/user.slice/user-0.slice".to_owned(),
    ];
    let all: Vec<&str> = groups.iter().chain(&others).map(String::as_str).collect();
    let h = v2(dir.path(), &all);
    assert_eq!(h.version, Version::V2);
    let found =
        find(&h, &Wanted { services: vec!["vllm.service".into()], roots: vec![] }, &mut Watch::default());
    let mut want: Vec<&str> = groups.iter().map(String::as_str).collect();
    want.sort_unstable();
    assert_eq!(found.groups.iter().map(Group::path).collect::<Vec<_>>(), want);
    assert_eq!(found.left_out, 0);
    let of = |p: &str| &found.groups.iter().find(|g| g.path() == p).unwrap().identity;
    let a = of(&groups[0]);
    assert_eq!(
        (a.pod_uid.as_deref(), a.qos, a.driver, a.runtime),
        (Some(UID), Some("Burstable"), Some("systemd"), Some("containerd"))
    );
    let b = of(&groups[1]);
    assert_eq!(
        (b.qos, b.runtime, b.container_id.as_deref()),
        (Some("Guaranteed"), Some("cri-o"), Some(id('b').as_str()))
    );
    let c = of(&groups[2]);
    assert_eq!((c.qos, c.driver), (Some("BestEffort"), Some("cgroupfs")));
    assert_eq!((of(&groups[3]).runtime, of(&groups[3]).pod_uid.as_ref()), (Some("docker"), None));
    assert_eq!(found.groups.iter().filter(|g| g.kind == Kind::Service).count(), 1);
}

#[test]
fn kind_custom_roots_and_the_quirk_of_containerd() {
    let dir = tempfile::tempdir().unwrap();
    let under = UID.replace('-', "_");
    let node = format!("/system.slice/docker-{}.scope", id('1'));
    let inner = format!(
        "{node}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{under}.slice/cri-containerd-{}.scope",
        id('2')
    );
    let custom = format!("/tenant/a/kubepods/pod{UID}/{}", id('3'));
    let quirk = format!(
        "/system.slice/containerd.service/kubepods-burstable-pod{under}.slice:cri-containerd:{}",
        id('4')
    );
    let hidden = format!("/tenant/b/kubepods/pod{UID}/{}", id('5'));
    let h = v2(dir.path(), &[&node, &inner, &custom, &quirk, &hidden]);
    let found =
        find(&h, &Wanted { services: vec![], roots: vec!["/tenant/a".into()] }, &mut Watch::default());
    let mut want = [node, inner, custom, quirk];
    want.sort();
    assert_eq!(found.groups.iter().map(Group::path).collect::<Vec<_>>(), want);
}

#[test]
fn a_group_of_v2_is_read_with_the_tightest_limit() {
    let dir = tempfile::tempdir().unwrap();
    let pod = format!("/kubepods.slice/kubepods-pod{}.slice", UID.replace('-', "_"));
    let path = format!("{pod}/cri-containerd-{}.scope", id('a'));
    let h = v2(dir.path(), &[&path]);
    let group = &find(&h, &Wanted::default(), &mut Watch::default()).groups[0];
    fs::write(dir.path().join(pod.trim_start_matches('/')).join("memory.max"), "2097152\n").unwrap();
    let reader = Reader::open(&h, group).unwrap();
    let (mut buffer, mut m) = ([0; 8192], Memory::default());
    reader.read(Depth::Full, &mut buffer, &mut m).unwrap();
    assert_eq!(m.current, Some(Bytes(1 << 20)));
    assert_eq!(m.limit, Some(Limit::At(Bytes(2 << 20))));
    assert_eq!(
        (m.anon, m.file, m.shmem, m.kernel),
        (Some(Bytes(100)), Some(Bytes(200)), Some(Bytes(50)), Some(Bytes(300)))
    );
    assert_eq!((m.at_limit, m.oom, m.oom_kill, m.oom_group_kill), (Some(7), Some(2), Some(1), Some(0)));
    assert_eq!(
        (m.pressure.some_us, m.pressure.full_us, m.pressure.full_avg10),
        (Some(11), Some(10), Some(1234))
    );
    assert_eq!(m.working_set(), Some(Bytes((1 << 20) - 120)));
    // This kernel has no memory.peak and no swap accounting: nothing is made up.
    assert_eq!((m.peak, m.swap), (None, None));
    // The values move on under the same descriptors.
    let file = dir.path().join(path.trim_start_matches('/')).join("memory.current");
    fs::write(file, "77\n").unwrap();
    reader.read(Depth::Quick, &mut buffer, &mut m).unwrap();
    assert_eq!((m.current, m.anon), (Some(Bytes(77)), Some(Bytes(100))));
}

#[test]
fn limits_of_both_generations() {
    assert_eq!(Limit::parse(b"max\n"), Some(Limit::Unlimited));
    assert_eq!(Limit::parse(b"9223372036854771712\n"), Some(Limit::Unlimited));
    assert_eq!(Limit::parse(b"5\n"), Some(Limit::At(Bytes(5))));
    assert_eq!(Limit::parse(b"\n"), None);
    let mut m = Memory::default();
    m.stat_v1(b"rss 1\ntotal_rss 2\ntotal_cache 3\ntotal_shmem 0\nhierarchical_memory_limit 134217728\n");
    assert_eq!(
        (m.anon, m.file, m.shmem, m.inactive_file),
        (Some(Bytes(2)), Some(Bytes(3)), Some(Bytes(0)), None)
    );
    assert_eq!(m.limit, Some(Limit::At(Bytes(128 << 20))));
    assert_eq!(m.working_set(), None, "without the inactive part there is no working set");
}

#[test]
fn a_walk_is_due_when_a_container_comes_or_goes() {
    let dir = tempfile::tempdir().unwrap();
    let pod = format!("kubepods/pod{UID}");
    let h = v2(dir.path(), &[&format!("/{pod}/{}", id('a'))]);
    let mut watch = Watch::default();
    let groups = |w: &mut Watch| find(&h, &Wanted::default(), w).groups.len();
    assert!(watch.changed());
    assert_eq!((groups(&mut watch), watch.changed(), watch.len()), (1, false, 3));
    fs::create_dir(dir.path().join(&pod).join(id('b'))).unwrap();
    assert!(watch.changed());
    assert_eq!((groups(&mut watch), watch.changed()), (2, false));
    // Whoever read a group that vanished says so; and all are looked into again with time.
    watch.forget(&dir.path().join(&pod));
    assert!(watch.changed());
    assert_eq!((groups(&mut watch), watch.changed()), (2, false));
    (0..9).for_each(|_| watch.doubt());
    assert!(!watch.changed(), "nothing came or went");
    fs::remove_dir_all(dir.path().join("kubepods")).unwrap();
    assert_eq!((groups(&mut watch), watch.changed(), watch.len(), watch.is_empty()), (0, false, 1, false));
}

#[test]
fn no_hierarchy_is_none() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Hierarchy::below(dir.path()).is_none());
    fs::write(dir.path().join("cgroup.controllers"), "cpu io\n").unwrap();
    assert!(Hierarchy::below(dir.path()).is_none());
}
