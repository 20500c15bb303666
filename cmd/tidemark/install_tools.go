package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tidemark/cmd/internal/cli"
)

// installToolsCommand makes links with the names of Kafka's tools to this binary.
func installToolsCommand(env *cli.Env) *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:   "install-tools DIR",
		Short: "Make links to this binary with the names of Kafka's tools",
		Long: "Makes two links to this binary in DIR for each of Kafka's tools, with and without \".sh\".\n" +
			"A file that is not such a link already is left alone, and the command fails, unless --force is given.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			binary, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this binary: %w", err)
			}
			return installTools(env, binary, args[0], force)
		},
	}
	command.Flags().BoolVar(&force, "force", false, "replace files of the same name that are something else")
	return command
}

// installTools links every name in dir to binary. Nothing is changed when a foreign
// file is in the way and force is not set.
func installTools(env *cli.Env, binary, dir string, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.name, t.name+".sh")
	}
	for _, name := range names {
		foreign, err := isForeign(filepath.Join(dir, name), binary)
		if err != nil {
			return err
		}
		if foreign && !force {
			return fmt.Errorf("%s exists and is not a link to %s; --force replaces it", filepath.Join(dir, name), binary)
		}
	}
	for _, name := range names {
		if err := link(binary, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(env.Stdout, "%d links in %s\n", len(names), dir)
	return err
}

// isForeign reports whether path is there and is anything but a link to binary.
func isForeign(path, binary string) (bool, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	target, err := os.Readlink(path)
	return err != nil || target != binary, nil
}

// link puts a symbolic link at path, in one step also when something is there.
func link(binary, path string) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(binary, next); err != nil {
		return err
	}
	return os.Rename(next, path)
}
