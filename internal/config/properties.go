package config

import (
	"fmt"
	"maps"

	"github.com/magiconair/properties"
)

// ParseProperties reads the text of a server.properties file: Java's format in ISO-8859-1. ${…} stays as it is.
// Of a key given twice the last one counts.
func ParseProperties(data []byte) (map[string]string, error) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := loader.LoadBytes(data)
	if err != nil {
		return nil, fmt.Errorf("parse properties: %w", err)
	}
	return p.Map(), nil
}

// FillStandalone adds to props what a node needs that stands alone, where props has nothing: both roles, the name of a
// controller listener, and replication factor 1 for internal topics. The number of the node is left to the caller.
func FillStandalone(props map[string]string) {
	defaults := map[string]string{
		"process.roles":                                    "broker,controller",
		"controller.listener.names":                        "CONTROLLER",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
	}
	maps.Copy(defaults, props)
	maps.Copy(props, defaults)
}
