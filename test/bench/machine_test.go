//go:build oracle

package bench

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// machine is what a reader needs to know of where the figures come from.
type machine struct {
	CPU          string `json:"cpu"` // as the kernel names it
	Cores        int    `json:"cores"`
	MemoryMiB    int64  `json:"memoryMiB"`
	Kernel       string `json:"kernel"`
	FileSystem   string `json:"fileSystem"` // of the brokers' data
	Go           string `json:"go"`
	Tidemark     string `json:"tidemark"` // the revision
	Java         string `json:"java"`
	Kafka        string `json:"kafka"`
	JavaSettings string `json:"javaSettings"` // of Kafka: memory and collector
}

func thisMachine() (m machine, err error) {
	m = machine{Cores: runtime.NumCPU(), Go: fmt.Sprintf("%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH),
		Kafka: oracle.Version, JavaSettings: strings.Join(oracle.PlainJVM(), " ")}
	m.CPU = procLine("/proc/cpuinfo", "model name")
	if strings.Contains(procLine("/proc/cpuinfo", "flags")+" ", " hypervisor ") {
		m.CPU += " (virtual machine)"
	}
	if _, err := fmt.Sscan(procLine("/proc/meminfo", "MemTotal"), &m.MemoryMiB); err != nil {
		return m, fmt.Errorf("memory of this machine: %w", err)
	}
	m.MemoryMiB /= 1024
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, err
	}
	m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	m.FileSystem = fileSystem(*dirFlag)
	if inMemory(*dirFlag) && !inMemory("") {
		m.FileSystem += "; where a case needs a disk, " + fileSystem("")
	}
	m.Tidemark = revision()
	java, err := exec.Command("java", "-version").CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(java)), "\n")
	m.Java = strings.TrimSpace(lines[len(lines)-1])
	if len(lines) > 1 {
		m.Java = strings.TrimSpace(lines[1]) + "; " + m.Java
	}
	return m, err
}

// procLine is what follows a name and a colon in a file of /proc.
func procLine(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// fileSystem is the kind of the file system that a directory is on.
func fileSystem(dir string) string {
	if dir == "" {
		dir = os.TempDir()
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "unknown"
	}
	kind, longest := "unknown", 0
	for line := range bytes.Lines(mounts) {
		fields := strings.Fields(string(line))
		if len(fields) < 4 || len(fields[1]) < longest {
			continue
		}
		if at := strings.TrimSuffix(fields[1], "/"); dir == at || strings.HasPrefix(dir, at+"/") {
			kind, longest = fields[2], len(fields[1])
		}
	}
	return kind
}

// revision is that of the source that the measured binary was built from.
func revision() string {
	if os.Getenv(proc.BinaryEnv) != "" {
		return "a binary built before"
	}
	rev, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "revision unknown"
	}
	changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", ":/").Output()
	if err != nil || len(changes) > 0 {
		return "revision " + strings.TrimSpace(string(rev)) + " with changes"
	}
	return "revision " + strings.TrimSpace(string(rev))
}

// command is the command line that does the same.
func command() string {
	var flags []string
	flag.Visit(func(f *flag.Flag) {
		switch {
		case strings.HasPrefix(f.Name, "test.") || f.Name == "out":
		case f.Value.String() == "true":
			flags = append(flags, "-"+f.Name)
		default:
			flags = append(flags, "-"+f.Name+" "+quoted(f.Value.String()))
		}
	})
	if len(flags) == 0 {
		return "make bench-kafka"
	}
	return fmt.Sprintf(`make bench-kafka BENCHFLAGS="%s"`, strings.Join(flags, " "))
}

// quoted is a word for the shell.
func quoted(word string) string {
	if strings.ContainsAny(word, " |()*?$&;<>") {
		return "'" + word + "'"
	}
	return word
}
