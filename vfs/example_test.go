package vfs_test

import (
	"fmt"
	"math/rand/v2"
	"os"

	"tidemark/vfs"
)

func ExampleMem() {
	disk := vfs.NewMem()
	f, err := disk.OpenFile("log", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := f.WriteAt([]byte("durable"), 0); err != nil {
		fmt.Println(err)
	}
	fmt.Println(f.Sync(), disk.SyncDir("/"))
	if _, err := f.WriteAt([]byte(", and in the page cache"), 7); err != nil {
		fmt.Println(err)
	}
	after := disk.CrashClone(rand.New(rand.NewPCG(1, 2)), 0) // nothing unsynced is kept
	data, err := vfs.ReadFile(after, "log")
	fmt.Printf("%s, %v\n", data, err)
	// Output:
	// <nil> <nil>
	// durable, <nil>
}

func ExampleWriteFileAtomic() {
	disk := vfs.NewMem()
	fmt.Println(vfs.WriteFileAtomic(disk, "checkpoint", []byte("0\n0\n")))
	fmt.Print(disk)
	// Output:
	// <nil>
	// /checkpoint 4
}
