package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// toolCommand lists a tool under the root command, for help and shell completion; run
// starts tools itself, past cobra, because their options are not cobra's.
func toolCommand(t tool) *cobra.Command {
	return &cobra.Command{
		Use:                t.name,
		Short:              t.short,
		DisableFlagParsing: true,
		Run:                func(*cobra.Command, []string) {},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return completeOptions(t, prefix), cobra.ShellCompDirectiveDefault
		},
	}
}

// completeOptions lists the options of a tool that start with prefix, each with its
// description after a tab.
func completeOptions(t tool, prefix string) []string {
	if !strings.HasPrefix(prefix, "-") {
		return nil
	}
	var found []string
	for _, o := range t.options().Options() {
		if strings.HasPrefix("--"+o.Name, prefix) {
			help, _, _ := strings.Cut(o.Help, "\n")
			found = append(found, "--"+o.Name+"\t"+help)
		}
	}
	return found
}
