// Package oracle runs real Apache Kafka, the judge of this project's tests: one-node KRaft servers on loopback and
// Kafka's own command lines.
//
// The jars come from Maven into a cache (the user's cache directory, or the one that the environment variable
// TIDEMARK_ORACLE names) once for each version. Java 17 with its compiler, and Maven for the first time, must be
// there: a test that asks for Kafka fails without them, it is never skipped. Such tests carry the build tag "oracle".
package oracle

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Version is the version of Kafka that Tidemark is judged by.
const Version = "4.3.1"

// CacheEnv is the environment variable that names the cache directory.
const CacheEnv = "TIDEMARK_ORACLE"

//go:embed runner/Runner.java
var runnerSource []byte

// Kafka is one version's jars and the JVM that runs its tools. It may be used by several tests at once.
type Kafka struct {
	Version   string
	libs      string // directory of the jars
	classes   string // directory of the compiled Runner
	toolsLog  string // log4j settings for tools: warnings, to standard error
	serverLog string // log4j settings for servers: all from INFO, to standard output

	mu     sync.Mutex
	runner *runner
}

var known struct {
	sync.Mutex
	kafkas map[string]*Kafka
}

// Get returns Kafka of a version, fetching its jars when the cache has none.
func Get(t testing.TB, version string) *Kafka {
	t.Helper()
	known.Lock()
	defer known.Unlock()
	if k := known.kafkas[version]; k != nil {
		return k
	}
	k, err := prepare(version)
	if err != nil {
		t.Fatalf("NOT TESTED AGAINST KAFKA %s: %v", version, err)
	}
	if known.kafkas == nil {
		known.kafkas = make(map[string]*Kafka)
	}
	known.kafkas[version] = k
	return k
}

func prepare(version string) (*Kafka, error) {
	for _, program := range []string{"java", "javac"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("a JDK of version 17 or later is needed: %w", err)
		}
	}
	cache := os.Getenv(CacheEnv)
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("cache directory: %w", err)
		}
		cache = filepath.Join(base, "tidemark-oracle")
	}
	home := filepath.Join(cache, "kafka-"+version)
	k := &Kafka{Version: version, libs: filepath.Join(home, "libs")}
	err := produceOnce(k.libs, func(dir string) error { return fetch(version, dir) })
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(runnerSource)
	k.classes = filepath.Join(home, fmt.Sprintf("runner-%x", sum[:6]))
	if err := produceOnce(k.classes, k.compile); err != nil {
		return nil, err
	}
	k.toolsLog = filepath.Join(k.classes, "tools")
	k.serverLog = filepath.Join(k.classes, "server")
	return k, nil
}

// produceOnce makes the directory path by calling produce with a temporary one beside it, which is then renamed: it is
// whole or absent, whatever runs at the same time.
func produceOnce(path string, produce func(dir string) error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := produce(dir); err != nil {
		return err
	}
	if err := os.Rename(dir, path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// pom names the two modules that hold the broker and the tools. Kafka before 4.0 brings its logging with it.
const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tidemark</groupId><artifactId>oracle</artifactId><version>1</version><packaging>jar</packaging>
<dependencies>%s</dependencies></project>
`

// dependency leaves Connect out: no tool here needs it, and some versions of it were never published.
const dependency = `<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version><exclusions>
<exclusion><groupId>org.apache.kafka</groupId><artifactId>connect-api</artifactId></exclusion>
<exclusion><groupId>org.apache.kafka</groupId><artifactId>connect-json</artifactId></exclusion>
<exclusion><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId></exclusion>
<exclusion><groupId>org.apache.kafka</groupId><artifactId>connect-transforms</artifactId></exclusion>
</exclusions></dependency>
`

func fetch(version, dir string) error {
	if _, err := exec.LookPath("mvn"); err != nil {
		return fmt.Errorf("the jars must be fetched: %w", err)
	}
	modules := []string{"org.apache.kafka:kafka_2.13:" + version, "org.apache.kafka:kafka-tools:" + version}
	if strings.HasPrefix(version, "3.") {
		modules = append(modules, "org.slf4j:slf4j-reload4j:1.7.36")
	} else {
		modules = append(modules, "org.apache.logging.log4j:log4j-slf4j-impl:2.25.1",
			"org.apache.logging.log4j:log4j-core:2.25.1")
	}
	return copyJars(modules, dependency, dir)
}

// copyJars fetches modules, "group:artifact:version", and what they need, into dir.
func copyJars(modules []string, form, dir string) error {
	var dependencies strings.Builder
	for _, m := range modules {
		part := strings.Split(m, ":")
		fmt.Fprintf(&dependencies, form, part[0], part[1], part[2])
	}
	project, err := os.MkdirTemp("", "tidemark-oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(project)
	text := fmt.Sprintf(pom, dependencies.String())
	if err := os.WriteFile(filepath.Join(project, "pom.xml"), []byte(text), 0o644); err != nil {
		return err
	}
	for tries := 1; ; tries++ { // a registry may fail for a moment
		cmd := exec.Command("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+dir)
		cmd.Dir = project
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		if tries == 3 {
			return fmt.Errorf("mvn dependency:copy-dependencies: %w\n%s", err, bytes.TrimSpace(out))
		}
	}
}

// logging holds the settings files: Kafka's own scripts log warnings of tools to standard error in this form.
var logging = map[string]string{
	"tools.log4j2":  log4j2("WARN", "SYSTEM_ERR"),
	"server.log4j2": log4j2("INFO", "SYSTEM_OUT"),
	"tools.log4j":   log4j1("WARN", "System.err"),
	"server.log4j":  log4j1("INFO", "System.out"),
}

func log4j2(level, target string) string {
	return strings.Join([]string{"appender.c.type=Console", "appender.c.name=C", "appender.c.target=" + target,
		"appender.c.layout.type=PatternLayout", "appender.c.layout.pattern=[%d] %p %m (%c)%n",
		"rootLogger.level=" + level, "rootLogger.appenderRef.c.ref=C", ""}, "\n")
}

func log4j1(level, target string) string {
	return strings.Join([]string{"log4j.rootLogger=" + level + ", C", "log4j.appender.C=org.apache.log4j.ConsoleAppender",
		"log4j.appender.C.layout=org.apache.log4j.PatternLayout",
		"log4j.appender.C.layout.ConversionPattern=[%d] %p %m (%c)%n", "log4j.appender.C.Target=" + target, ""}, "\n")
}

func (k *Kafka) compile(dir string) error {
	source := filepath.Join(dir, "Runner.java")
	if err := os.WriteFile(source, runnerSource, 0o644); err != nil {
		return err
	}
	for name, text := range logging {
		if err := os.WriteFile(filepath.Join(dir, name+".properties"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	cmd := exec.Command("javac", "-cp", filepath.Join(k.libs, "*"), "-d", dir, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("javac Runner.java: %w\n%s", err, out)
	}
	return nil
}

// java returns the arguments of a JVM that runs a main class with the log settings given.
func (k *Kafka) java(log string, heap []string, main string, args ...string) []string {
	all := append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"}, heap...)
	all = append(all, "-Dlog4j2.configurationFile="+log+".log4j2.properties", "-Dlog4j2.disable.jmx=true",
		"-Dlog4j.configuration=file:"+log+".log4j.properties", "-Dfile.encoding=UTF-8",
		"-cp", k.classes+string(os.PathListSeparator)+filepath.Join(k.libs, "*"), main)
	return append(all, args...)
}
