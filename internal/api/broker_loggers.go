package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/auth"
	"tidemark/internal/config"
	"tidemark/internal/controller"
)

// Loggers are the broker's loggers by name. Their levels are TRACE, DEBUG, INFO, WARN, ERROR and FATAL.
type Loggers interface {
	// Levels are the levels from which on each logger logs.
	Levels() map[string]string
	// SetLevel gives a logger that there is a level that there is.
	SetLevel(name, level string)
	// UnsetLevel makes a logger other than root log from root's level on.
	UnsetLevel(name string)
}

const rootLogger = "root" // its level is the others', as long as they have none of their own

var logLevels = []string{"DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"}

// describeLoggers are the levels of this broker's loggers.
func (a *API) describeLoggers(c *call, name string) ([]config.Entry, error) {
	if !a.allowed(c, auth.DescribeConfigs, auth.Cluster) {
		return nil, kerr.ClusterAuthorizationFailed
	}
	if name == "" {
		return nil, wireError(kerr.InvalidRequest, "Broker id must not be empty")
	}
	if err := a.checkOwnID(name, "Broker", "Unexpected broker id, expected %d but received %s"); err != nil {
		return nil, err
	}
	var entries []config.Entry
	levels := a.logLevels()
	for _, logger := range sortedKeys(levels) {
		level := levels[logger]
		entries = append(entries, config.Entry{Name: logger, Value: &level, Source: config.SourceBrokerLogger})
	}
	return entries, nil
}

func (a *API) logLevels() map[string]string {
	if a.Loggers == nil {
		return nil
	}
	return a.Loggers.Levels()
}

// alterLoggers changes levels, all or none.
//
// Kafka: RuntimeLoggerManager.
func (a *API) alterLoggers(c *call, x *alteration, validateOnly bool) error {
	if !a.allowed(c, auth.AlterConfigs, auth.Cluster) {
		return kerr.ClusterAuthorizationFailed
	}
	if err := a.checkOwnID(x.resource.Name, "Node", "Unexpected node id. Expected %d, but received %s"); err != nil {
		return err
	}
	levels := a.logLevels()
	for _, op := range x.ops {
		if err := checkLoggerOp(levels, op); err != nil {
			return err
		}
	}
	if validateOnly {
		return nil
	}
	for _, op := range x.ops {
		level := rootLogger + "'s"
		if op.Op == controller.OpSet {
			level = *op.Value
			a.Loggers.SetLevel(op.Key, level)
		} else {
			a.Loggers.UnsetLevel(op.Key)
		}
		a.Logger.Warn("the level of a logger was changed until the next start", "logger", op.Key, "level", level)
	}
	return nil
}

func checkLoggerOp(levels map[string]string, op controller.ConfigOp) error {
	switch op.Op {
	case controller.OpSet, controller.OpDelete:
	case controller.OpAppend:
		return wireError(kerr.InvalidRequest, "APPEND operation is not allowed for the BROKER_LOGGER resource")
	case controller.OpSubtract:
		return wireError(kerr.InvalidRequest, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource")
	default:
		return kerr.UnknownServerError // Kafka: a null operation
	}
	_, known := levels[op.Key]
	switch {
	case !known:
		return wireError(kerr.InvalidConfig, "Logger "+op.Key+" does not exist!")
	case op.Op == controller.OpSet && !slices.Contains(logLevels, *op.Value):
		return wireError(kerr.InvalidConfig, fmt.Sprintf("Cannot set the log level of %s to %s as it is not a supported "+
			"log level. Valid log levels are %s", op.Key, *op.Value, strings.Join(logLevels, ", ")))
	case op.Op == controller.OpDelete && op.Key == rootLogger:
		return wireError(kerr.InvalidRequest, "Removing the log level of the root logger is not allowed")
	}
	return nil
}
