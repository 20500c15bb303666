package proc

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// BinaryEnv is the environment variable that names a tidemark binary to test instead of one built from the tree.
const BinaryEnv = "TIDEMARK_BINARY"

var build struct {
	once sync.Once
	path string
	err  error
}

// Tidemark returns the path of the tidemark binary, built from the tree once a test process; with the race detector
// when the test has it.
func Tidemark(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(BinaryEnv); path != "" {
		return path
	}
	build.once.Do(func() {
		dir, err := os.MkdirTemp("", "tidemark-binary")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "tidemark")
		args, cgo := []string{"build", "-o", build.path}, "CGO_ENABLED=0"
		if raceDetector {
			args, cgo = append(args, "-race"), "CGO_ENABLED=1"
		}
		cmd := exec.Command("go", append(args, "tidemark/cmd/tidemark")...)
		cmd.Env = append(os.Environ(), cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("go build tidemark/cmd/tidemark: %w\n%s", err, out)
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// RemoveTidemark deletes the binary that Tidemark built; a TestMain calls it last.
func RemoveTidemark() {
	if build.path != "" {
		os.RemoveAll(filepath.Dir(build.path))
	}
}

// Serve starts "tidemark serve" over the data directory dir on a loopback port, a free one when port is 0, and waits
// until it listens. It returns the process and its address.
func Serve(t testing.TB, dir string, port int, args ...string) (*Process, string) {
	t.Helper()
	if port == 0 {
		port = FreePorts(t, 1)[0]
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	all := append([]string{"serve", "--data", dir, "--listen", addr}, args...)
	p := Start(t, "tidemark", Tidemark(t), all...)
	p.WaitListening(t, addr)
	return p, addr
}
