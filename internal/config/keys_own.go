package config

// ownKeys are Tidemark's own broker keys. Kafka ignores them, so that one server.properties serves both.
var ownKeys = []Definition{
	key("tidemark.admin.listener", String, "127.0.0.1:9464", nil, Medium,
		"HOST:PORT of the admin port with /metrics, /live and /ready; empty for none."),
	key("tidemark.api.versions", String, "wide", oneOf("wide", "kafka"), Low,
		"Which request versions are offered: wide also those of old clients, kafka exactly those of Kafka 4.3.1."),
	key("tidemark.lookup.slow.ms", Long, "1000", atLeast(-1), Low,
		"A look-up that takes at least this many ms is logged with the way it took; -1 for never."),
	key("tidemark.memory.bytes", Long, "268435456", atLeast(16777216), Medium,
		"Memory in bytes for requests, caches and decompression together."),
	key("tidemark.open.files", Int, "4096", atLeast(16), Medium,
		"Log and index files that are kept open at most."),
	key("tidemark.scrub.bytes.per.second", Long, "20971520", atLeast(1), Low,
		"Bytes a second that are read at most to check segments in the background."),
	key("tidemark.scrub.interval.ms", Long, "3600000", atLeast(0), Low,
		"Time in ms between two checks, in the background, of all segments that nothing vouches for; 0 for none."),
}
