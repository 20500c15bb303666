package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

// completeTopics lists the topics in the folders that the command line names before the option.
func (o *logOptions) completeTopics(_ *cobra.Command, args []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return o.complete(args, prefix, func(t inspect.Target) string { return t.Topic })
}

// completePartitions lists the numbers of their partitions.
func (o *logOptions) completePartitions(_ *cobra.Command, args []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return o.complete(args, prefix, func(t inspect.Target) string { return strconv.Itoa(int(t.Partition)) })
}

// complete lists what the last part of a list that is being typed may become.
func (o *logOptions) complete(args []string, prefix string, name func(inspect.Target) string) ([]string,
	cobra.ShellCompDirective) {
	targets, err := inspect.Resolve(o.fs, args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before := prefix[:strings.LastIndexByte(prefix, ',')+1]
	var out []string
	for _, t := range targets {
		if text := before + name(t); strings.HasPrefix(text, prefix) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// noFiles says that the values of options are no files.
func noFiles(c *cobra.Command, options ...string) {
	for _, name := range options {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}
