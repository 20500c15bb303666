package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"tidemark/cmd/internal/cli"
)

// versionCommand prints what this binary is.
func versionCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(env.Stdout, versionText(info))
			return err
		},
	}
}

// versionText is one line: module version, commit with a mark for changes after it,
// Go version, platform, and the Kafka version that is copied.
func versionText(info *debug.BuildInfo) string {
	if info == nil {
		return "tidemark (built without module support), Kafka " + cli.Version
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	commit := settings["vcs.revision"]
	if commit == "" {
		commit = "unknown"
	}
	if settings["vcs.modified"] == "true" {
		commit += "+changes"
	}
	return fmt.Sprintf("tidemark %s commit %s %s %s/%s, Kafka %s",
		version, commit, info.GoVersion, settings["GOOS"], settings["GOARCH"], cli.Version)
}
