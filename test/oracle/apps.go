package oracle

import (
	"path/filepath"
	"testing"

	"tidemark/test/proc"
)

// appDependency takes a module as it is, Connect included.
const appDependency = `<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>
`

// App starts a main class of Kafka Streams or Kafka Connect, or a source file that uses them: then main is the path of
// a .java file. Their jars are fetched when the cache has none. The process ends with the test.
func (k *Kafka) App(t testing.TB, name, main string, args ...string) *proc.Process {
	t.Helper()
	libs := filepath.Join(filepath.Dir(k.libs), "apps")
	err := produceOnce(libs, func(dir string) error {
		return copyJars([]string{"org.apache.kafka:kafka-streams:" + k.Version,
			"org.apache.kafka:connect-runtime:" + k.Version, "org.apache.kafka:connect-file:" + k.Version,
			"org.apache.logging.log4j:log4j-slf4j-impl:2.25.1", "org.apache.logging.log4j:log4j-core:2.25.1"},
			appDependency, dir)
	})
	if err != nil {
		t.Fatalf("NOT TESTED WITH APPLICATIONS OF KAFKA %s: %v", k.Version, err)
	}
	var jvm []string
	if filepath.Ext(main) == ".java" {
		jvm = []string{"--add-exports", "jdk.compiler/com.sun.tools.javac.launcher=ALL-UNNAMED"}
		args = append([]string{main}, args...)
		main = "com.sun.tools.javac.launcher.Main"
	}
	with := &Kafka{libs: libs, classes: k.classes}
	return proc.Start(t, name, "java", with.java(k.serverLog, append(jvm, "-Xmx256m"), "Runner",
		append([]string{"guard", main}, args...)...)...)
}
