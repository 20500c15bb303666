package main

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
)

// check refuses command lines that make no sense, in the order of Kafka's tool.
func (c *configsCommand) check() (err error) {
	if c.alter.Has() == c.describe.Has() {
		return cli.Usagef("Command must include exactly one action: --describe, --alter")
	}
	if err := cli.Forbid(c.describe, c.addConfig, c.deleteConfig); err != nil {
		return err
	}
	if c.kinds, c.entityNames, err = c.entities(); err != nil {
		return err
	}
	if err := c.checkKinds(); err != nil {
		return err
	}
	if c.bootstrap.Has() && c.controller.Has() {
		return cli.BadArgument("Only one of --bootstrap-server or --bootstrap-controller can be specified")
	}
	if err := c.checkNames(); err != nil {
		return err
	}
	if c.describe.Has() {
		return c.checkDescribe()
	}
	return c.checkAlter()
}

func (c *configsCommand) checkKinds() error {
	var seen, twice []string
	for _, kind := range c.kinds {
		if slices.Contains(seen, kind) {
			twice = append(twice, kind)
		}
		seen = append(seen, kind)
	}
	if twice != nil {
		return cli.BadArgument("Duplicate entity type(s) specified: %s", strings.Join(twice, ","))
	}
	if !c.bootstrap.Has() && !c.controller.Has() {
		return cli.BadArgument("Either --bootstrap-server or --bootstrap-controller must be specified.")
	}
	for _, kind := range c.kinds {
		if !slices.Contains(entityKinds, kind) {
			return cli.BadArgument("Invalid entity type %s, the entity type must be one of %s with a --bootstrap-server or "+
				"--bootstrap-controller argument", kind, strings.Join(entityKinds, ", "))
		}
	}
	switch {
	case len(c.kinds) == 0:
		return cli.BadArgument("At least one entity type must be specified")
	case len(c.kinds) > 1 && !(len(c.kinds) == 2 && c.has(userEntity) && c.has(clientEntity)):
		return cli.BadArgument("Only 'users' and 'clients' entity types may be specified together")
	case c.mixed():
		return cli.BadArgument("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
	}
	return nil
}

func (c *configsCommand) has(kind string) bool { return slices.Contains(c.kinds, kind) }

// mixed reports whether both ways to name an entity were used.
func (c *configsCommand) mixed() bool {
	given := func(f entityFlag) bool { return f.option.Has() }
	return (c.entityName.Has() || c.entityType.Has() || c.entityDefault.Has()) &&
		(slices.ContainsFunc(c.names, given) || slices.ContainsFunc(c.defaults, given))
}

func (c *configsCommand) named() bool {
	return slices.ContainsFunc(c.entityNames, func(name string) bool { return name != "" })
}

func (c *configsCommand) checkNames() error {
	if !c.named() {
		return nil
	}
	if c.has(brokerEntity) || c.has(loggerEntity) {
		err := eachValue([]*cli.Option{c.entityName, c.broker, c.brokerLogger}, func(id string) error {
			if _, err := strconv.ParseInt(id, 10, 32); err != nil {
				return cli.BadArgument("The entity name for %s must be a valid integer broker id, but it is: %s", c.kinds[0], id)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !c.has(ipEntity) {
		return nil
	}
	return eachValue([]*cli.Option{c.entityName, c.ip}, func(ip string) error {
		if _, err := net.LookupHost(ip); err != nil && ip != "" {
			return cli.BadArgument("The entity name for %s must be a valid IP or resolvable host, but it is: %s",
				c.kinds[0], ip)
		}
		return nil
	})
}

func eachValue(options []*cli.Option, check func(string) error) error {
	for _, o := range options {
		if !o.Has() {
			continue
		}
		value, err := o.Value()
		if err == nil {
			err = check(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasDefault reports whether the kinds of the command line can have defaults.
func (c *configsCommand) hasDefault() bool {
	return c.has(userEntity) || c.has(clientEntity) || c.has(brokerEntity) || c.has(ipEntity)
}

func (c *configsCommand) checkDescribe() error {
	kinds := strings.Join(c.kinds, ",")
	if !c.hasDefault() && c.entityDefault.Has() {
		return cli.BadArgument("--entity-default must not be specified with --describe of %s", kinds)
	}
	if c.has(loggerEntity) && !c.named() {
		return cli.BadArgument("An entity name must be specified with --describe of %s", kinds)
	}
	return nil
}

func (c *configsCommand) checkAlter() error {
	switch {
	case c.hasDefault() && len(c.entityNames) == 0:
		return cli.BadArgument("An entity-name or default entity must be specified with --alter of users, clients, " +
			"brokers or ips")
	case !c.hasDefault() && !c.named():
		return cli.BadArgument("An entity name must be specified with --alter of %s", strings.Join(c.kinds, ","))
	case c.addConfig.Has() && c.addConfigFile.Has():
		return cli.BadArgument("Only one of --add-config or --add-config-file must be specified")
	case !c.addConfig.Has() && !c.addConfigFile.Has() && !c.deleteConfig.Has():
		return cli.BadArgument("At least one of --add-config, --add-config-file, or --delete-config must be specified " +
			"with --alter")
	}
	return nil
}
