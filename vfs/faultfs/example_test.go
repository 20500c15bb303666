package faultfs_test

import (
	"errors"
	"fmt"

	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

func ExampleWrap() {
	fullDisk := &faultfs.Nth{N: 1, Sticky: true,
		Match: func(op faultfs.Op, _ string) bool { return op == faultfs.WriteAt }}
	fsys := faultfs.Wrap(vfs.NewMem(), fullDisk)
	err := vfs.WriteFileAtomic(fsys, "f", []byte("text"))
	fmt.Println(errors.Is(err, faultfs.ErrInjected), err)
	// Output: true write f: write f.tmp: injected failure
}
