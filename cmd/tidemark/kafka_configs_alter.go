package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// A setting is a name and the value to give it.
type setting struct{ name, value string }

func (c *configsCommand) alterConfig(ctx context.Context) error {
	add, err := c.added()
	if err != nil {
		return err
	}
	var remove []string
	for _, name := range c.deleteConfig.Values() {
		remove = append(remove, strings.TrimSpace(name))
	}
	kind, name := c.kinds[0], c.entityNames[0]
	switch kind {
	case userEntity, clientEntity:
		err = c.alterUserOrClient(ctx, add, remove)
	case ipEntity:
		err = c.alterIP(ctx, add, remove)
	case loggerEntity:
		if err = c.checkLoggers(ctx, name, add, remove); err == nil {
			err = c.alterResource(ctx, kind, name, add, remove)
		}
	default:
		err = c.alterResource(ctx, kind, name, add, remove)
	}
	if err != nil {
		return err
	}
	if name == "" {
		_, err = fmt.Fprintf(c.env.Stdout, "Completed updating default config for %s in the cluster.\n", kind)
	} else {
		_, err = fmt.Fprintf(c.env.Stdout, "Completed updating config for %s %s.\n", singular(kind), name)
	}
	return err
}

var settingName = cli.Pattern(`^[$a-zA-Z0-9._-]*$`)

// added reads --add-config-file or --add-config.
func (c *configsCommand) added() ([]setting, error) {
	var add []setting
	if c.addConfigFile.Has() {
		file, err := c.addConfigFile.Value()
		if err != nil {
			return nil, err
		}
		loaded, err := cli.LoadProperties(file)
		if err != nil {
			return nil, err
		}
		for name, value := range loaded {
			add = append(add, setting{name, value})
		}
		slices.SortFunc(add, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	}
	if c.addConfig.Has() {
		text, err := c.addConfig.Value()
		if err != nil {
			return nil, err
		}
		if add, err = parseSettings(text); err != nil {
			return nil, err
		}
	}
	for _, s := range add {
		if !settingName().MatchString(s.name) {
			return nil, cli.BadArgument("Invalid character found for config key: %s", s.name)
		}
	}
	return add, nil
}

// parseSettings reads "k1=v1,k2=[v1,v2]". A name that comes twice has its last value.
func parseSettings(text string) ([]setting, error) {
	var add []setting
	for _, item := range splitOutside(strings.TrimRight(text, ","), ',') {
		pair := splitOutside(item, '=')
		if len(pair) != 2 {
			return nil, cli.BadArgument("requirement failed: Invalid entity config: all configs to be added must be in the " +
				"format \"key=val\" or  \"key=[val1,val2]\" to group values which contain commas.")
		}
		value := strings.NewReplacer("[", "", "]", "").Replace(pair[1])
		one := setting{strings.TrimSpace(pair[0]), strings.TrimSpace(value)}
		add = slices.DeleteFunc(add, func(s setting) bool { return s.name == one.name })
		add = append(add, one)
	}
	return add, nil
}

// splitOutside cuts text at each separator that is not inside square brackets: the next
// bracket after it, if any, opens.
func splitOutside(text string, separator byte) []string {
	var pieces []string
	start := 0
	for i := range len(text) {
		if text[i] != separator {
			continue
		}
		if next := strings.IndexAny(text[i+1:], "[]"); next >= 0 && text[i+1+next] == ']' {
			continue
		}
		pieces = append(pieces, text[start:i])
		start = i + 1
	}
	return append(pieces, text[start:])
}

func (c *configsCommand) alterResource(ctx context.Context, kind, name string, add []setting, remove []string) error {
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = resourceKinds[kind].resource, name
	for _, key := range remove {
		entry := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		entry.Name, entry.Op, entry.Value = key, kmsg.IncrementalAlterConfigOpDelete, new(string)
		resource.Configs = append(resource.Configs, entry)
	}
	for _, s := range add {
		entry := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		entry.Name, entry.Op, entry.Value = s.name, kmsg.IncrementalAlterConfigOpSet, &s.value
		resource.Configs = append(resource.Configs, entry)
	}
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = []kmsg.IncrementalAlterConfigsRequestResource{resource}
	response, err := cli.Ask[*kmsg.IncrementalAlterConfigsResponse](ctx, c.admin, "incrementalAlterConfigs", request)
	if err != nil {
		return cli.Execution(err)
	}
	for _, r := range response.Resources {
		if f := cli.APIFailure(r.ErrorCode, r.ErrorMessage); f != nil {
			return cli.Execution(f)
		}
	}
	return nil
}

// checkLoggers refuses names that are no logger of the broker.
func (c *configsCommand) checkLoggers(ctx context.Context, broker string, add []setting, remove []string) error {
	loggers, err := c.resourceConfig(ctx, loggerEntity, broker, false)
	if err != nil {
		return err
	}
	known := func(name string) bool {
		return slices.ContainsFunc(loggers, func(e configEntry) bool { return e.Name == name })
	}
	var unknown []string
	for _, name := range remove {
		if !known(name) {
			unknown = append(unknown, name)
		}
	}
	for _, s := range add {
		if !known(s.name) {
			unknown = append(unknown, s.name)
		}
	}
	if unknown != nil {
		return cli.Fail(classInvalidConfig, "Invalid broker logger(s): %s", strings.Join(unknown, ","))
	}
	return nil
}
