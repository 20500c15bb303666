package main

import (
	"context"
	"fmt"
	"strings"

	"tidemark/cmd/internal/cli"
)

// configsTool is Kafka's ConfigCommand: settings of topics, brokers, groups and client
// metrics, quotas of users, clients and IPs, and SCRAM credentials.
var configsTool = tool{
	name:    "kafka-configs",
	short:   "Show and change settings, quotas and SCRAM credentials",
	run:     runConfigs,
	options: func() *cli.Parser { return &newConfigsOptions().parser },
}

const (
	configsIntro = "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, " +
		"client-metrics or group"
	classInvalidConfig          = "org.apache.kafka.common.errors.InvalidConfigurationException"
	classUnacceptableCredential = "org.apache.kafka.common.errors.UnacceptableCredentialException"
	classInvalidTopic           = "org.apache.kafka.common.errors.InvalidTopicException"
)

// The kinds of entity, as --entity-type names them.
const (
	topicEntity   = "topics"
	clientEntity  = "clients"
	userEntity    = "users"
	brokerEntity  = "brokers"
	ipEntity      = "ips"
	metricsEntity = "client-metrics"
	groupEntity   = "groups"
	loggerEntity  = "broker-loggers"
)

var entityKinds = []string{
	topicEntity, clientEntity, userEntity, brokerEntity, ipEntity, metricsEntity, groupEntity, loggerEntity,
}

// entityFlag is an option that names an entity of one kind, or the default of the kind.
type entityFlag struct {
	option *cli.Option
	kind   string
}

type configsOptions struct {
	parser                                 cli.Parser
	bootstrap, controller, commandConfig   *cli.Option
	alter, describe, all                   *cli.Option
	entityType, entityName, entityDefault  *cli.Option
	addConfig, addConfigFile, deleteConfig *cli.Option
	broker, brokerLogger, ip               *cli.Option
	names, defaults                        []entityFlag
}

func newConfigsOptions() *configsOptions {
	o := &configsOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "server to connect to", "Brokers to ask first.")
	o.controller = p.Text("bootstrap-controller", "controller to connect to", "Controllers to ask first.")
	o.commandConfig = p.Text("command-config", "command config property file", "File with settings for the client.")
	o.alter = p.Flag("alter", "Change settings of the entity.")
	o.describe = p.Flag("describe", "Show settings of the entity.")
	o.all = p.Flag("all", "With --describe: settings from every source, not only those of the entity itself.")
	o.entityType = p.Text("entity-type", "",
		"Kind of entity (topics/clients/users/brokers/broker-loggers/ips/client-metrics/groups)")
	o.entityName = p.Text("entity-name", "",
		"Name of the entity: topic, client id, user principal, broker id, IP, client metrics or group id.")
	o.entityDefault = p.Flag("entity-default", "The defaults of the kind: clients, users, brokers or ips.")
	o.addConfig = p.Text("add-config", "", addConfigHelp())
	o.addConfigFile = p.Text("add-config-file", "", "Properties file with the settings to set; see --add-config.")
	o.deleteConfig = p.Add(cli.Option{Name: "delete-config", Arity: cli.RequiredArg, Separator: ",",
		Help: "Names of the settings to remove: 'k1,k2'"})
	o.addEntities(p)
	return o
}

func (o *configsOptions) addEntities(p *cli.Parser) {
	o.broker = p.Text("broker", "", "Id of the broker.")
	o.brokerLogger = p.Text("broker-logger", "", "Id of the broker whose loggers are meant.")
	o.ip = p.Text("ip", "", "The IP address.")
	o.names = []entityFlag{
		{p.Text("topic", "", "Name of the topic."), topicEntity},
		{p.Text("client", "", "Id of the client."), clientEntity},
		{p.Text("user", "", "Principal of the user."), userEntity},
		{o.broker, brokerEntity},
		{o.brokerLogger, loggerEntity},
		{o.ip, ipEntity},
		{p.Text("client-metrics", "", "Name of the client metrics resource."), metricsEntity},
		{p.Text("group", "", "Id of the group."), groupEntity},
	}
	o.defaults = []entityFlag{
		{p.Flag("client-defaults", "The defaults of all clients."), clientEntity},
		{p.Flag("user-defaults", "The defaults of all users."), userEntity},
		{p.Flag("broker-defaults", "The defaults of all brokers."), brokerEntity},
		{p.Flag("ip-defaults", "The defaults of all IPs."), ipEntity},
	}
}

func addConfigHelp() string {
	quotas := []string{"consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage"}
	return "Settings to set: 'k1=v1,k2=[v1,v2,v2],k3=v3', with square brackets around a value that has commas.\n" +
		"For topics:" + nameList(topicConfigNames) +
		"For users:" + nameList(append([]string{"SCRAM-SHA-256", "SCRAM-SHA-512"}, quotas...)) +
		"For clients:" + nameList(quotas) +
		"For ips:" + nameList([]string{"connection_creation_rate"}) +
		"For client-metrics:" + nameList([]string{"interval.ms", "match", "metrics"}) +
		"For brokers and groups: what --describe --all shows.\n" +
		"A user and a client together stand for that client of that user."
}

// entities are the kinds and names of the command line, in the order of its options;
// the name "" stands for the default of its kind. A kind can lack a name.
func (o *configsOptions) entities() (kinds, names []string, err error) {
	kinds = append(kinds, o.entityType.Values()...)
	next := 0
	for _, given := range o.parser.Given() {
		switch given {
		case o.entityName:
			names = append(names, o.entityName.Values()[next])
			next++
		case o.entityDefault:
			names = append(names, "")
		}
	}
	for _, flag := range o.names {
		if !flag.option.Has() {
			continue
		}
		name, err := flag.option.Value()
		if err != nil {
			return nil, nil, err
		}
		kinds, names = append(kinds, flag.kind), append(names, name)
	}
	for _, flag := range o.defaults {
		if flag.option.Has() {
			kinds, names = append(kinds, flag.kind), append(names, "")
		}
	}
	return kinds, names, nil
}

func runConfigs(ctx context.Context, env *cli.Env, args []string) int {
	c := &configsCommand{env: env, configsOptions: newConfigsOptions()}
	return c.parser.Finish(env, c.main(ctx, args), func(f *cli.Failure) {
		switch {
		case strings.HasPrefix(f.Class, "joptsimple."), f.Class == classInvalidConfig, f.Class == classInvalidTopic,
			f.Class == "java.lang.IllegalArgumentException":
			fmt.Fprintln(env.Stderr, f.Message)
		default:
			fmt.Fprintf(env.Stderr, "Error while executing config command with args '%s'\n", strings.Join(args, " "))
			fmt.Fprint(env.Stderr, f.Trace())
		}
	})
}

// configsCommand is one run of the tool.
type configsCommand struct {
	*configsOptions
	env         *cli.Env
	admin       *cli.Admin
	kinds       []string // as entities tells
	entityNames []string
}

func (c *configsCommand) main(ctx context.Context, args []string) error {
	if err := c.parser.Parse(args); err != nil {
		return err
	}
	if err := c.parser.HelpOrVersion(c.env, configsIntro); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	defer c.admin.Close()
	if c.alter.Has() && len(c.kinds) != len(c.entityNames) {
		return cli.BadArgument("An entity name must be specified for every entity type")
	}
	if c.alter.Has() {
		return c.alterConfig(ctx)
	}
	return c.describeConfig(ctx)
}

func (c *configsCommand) connect() error {
	settings := cli.Properties{}
	if c.commandConfig.Has() {
		file, err := c.commandConfig.Value()
		if err != nil {
			return err
		}
		if settings, err = cli.LoadProperties(file); err != nil {
			return err
		}
	}
	servers, key := c.bootstrap, "bootstrap.servers"
	if !servers.Has() {
		servers, key = c.controller, "bootstrap.controllers"
	}
	list, err := servers.Value()
	if err != nil {
		return err
	}
	settings[key] = list
	c.admin, err = cli.NewAdmin(c.env, settings)
	return err
}
