//go:build !linux

package server

import (
	"errors"
	"syscall"
)

// Without sendfile and without a way to see what is in memory, file ranges are
// copied, and each read counts as one that may wait for a disk.
const canSendfile = false

func sendfile(syscall.RawConn, uintptr, int64, int64) (int64, error) { return 0, errors.ErrUnsupported }

func resident(uintptr, int64, int64) bool { return false }
