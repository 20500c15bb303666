//go:build oracle

package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"tidemark/test/oracle"
)

// goProgram is built once for all tests.
var goProgram struct {
	once sync.Once
	path string
	err  error
}

// goClient is a client of the module in the directory go.
func goClient(library string) func(t *testing.T, addr string) *exec.Cmd {
	return func(t *testing.T, addr string) *exec.Cmd {
		t.Helper()
		goProgram.once.Do(func() {
			goProgram.path = filepath.Join(cache(t), "go-clients")
			build := exec.Command("go", "build", "-o", goProgram.path, ".")
			build.Dir = "go"
			if out, err := build.CombinedOutput(); err != nil {
				goProgram.err = fmt.Errorf("go build: %w\n%s", err, out)
			}
		})
		if goProgram.err != nil {
			t.Fatal(goProgram.err)
		}
		return exec.Command(goProgram.path, library, addr)
	}
}

// cache is a directory for what is installed once.
func cache(t *testing.T) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "tidemark", "clients")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// installed runs a command that fills a directory of the cache, unless it has been done for the same key before.
func installed(t *testing.T, dir, key string, commands ...*exec.Cmd) {
	t.Helper()
	mark := filepath.Join(dir, ".installed")
	if b, err := os.ReadFile(mark); err == nil && string(b) == key {
		return
	}
	for _, cmd := range commands {
		for tries := 1; ; tries++ { // a registry may fail for a moment
			out, err := exec.Command(cmd.Args[0], cmd.Args[1:]...).CombinedOutput()
			if err == nil {
				break
			}
			if tries == 3 {
				t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
			}
		}
	}
	if err := os.WriteFile(mark, []byte(key), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pythonClient is a client whose module is in the directory python.
func pythonClient(module string) func(t *testing.T, addr string) *exec.Cmd {
	return func(t *testing.T, addr string) *exec.Cmd {
		t.Helper()
		dir := filepath.Join(cache(t), "python")
		python := filepath.Join(dir, "bin", "python")
		requirements := filepath.Join("python", "requirements.txt")
		key, err := os.ReadFile(requirements)
		if err != nil {
			t.Fatal(err)
		}
		installed(t, dir, string(key), exec.Command("python3", "-m", "venv", "--clear", dir),
			exec.Command(python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", requirements))
		cmd := exec.Command(python, "-B", filepath.Join("python", "driver.py"), module, addr)
		return cmd
	}
}

// nodeClient is KafkaJS, whose program is in the directory node.
func nodeClient(t *testing.T, addr string) *exec.Cmd {
	t.Helper()
	dir := filepath.Join(cache(t), "node")
	var key []byte
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
		key = append(key, b...)
	}
	installed(t, dir, string(key),
		exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir))
	cmd := exec.Command("node", filepath.Join("node", "driver.js"), addr)
	cmd.Env = append(os.Environ(), "MODULES="+dir, "KAFKAJS_NO_PARTITIONER_WARNING=1")
	return cmd
}

// javaClient is Kafka's own client, whose program is in the directory java: it is compiled as it starts.
func javaClient(t *testing.T, addr string) *exec.Cmd {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("java", "Driver.java"))
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Get(t, oracle.Version).PlainTool("com.sun.tools.javac.launcher.Main", source, addr)
}
