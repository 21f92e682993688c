-- Values of filters beside the trigrams of what is searched, each as a word of three characters (`store/tags.rs`): of filters that
-- each leave much, the index tells what all of them leave. It holds no text of its own; the program fills it.
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5 (
    searched, class, plane, phase, confidence, cluster, namespace, owner, container, node, image, model, engine, engine_version, gpu,
    gpu_name, driver, xid,
    content = '', tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0
);
