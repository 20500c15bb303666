//go:build oracle

package differential

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// testLoggers changes the level of the one logger that both have. It ends with Kafka's level of before.
func (w *world) testLoggers(t *testing.T) {
	root := func(version int16, broker string, names ...string) request {
		return func(*side) kmsg.Request {
			req := kmsg.NewPtrDescribeConfigsRequest()
			req.SetVersion(version)
			req.IncludeSynonyms, req.IncludeDocumentation = version > 0, version == 3
			rr := kmsg.NewDescribeConfigsRequestResource()
			rr.ResourceType, rr.ResourceName, rr.ConfigNames = 8, broker, names
			req.Resources = append(req.Resources, rr)
			return req
		}
	}
	for _, level := range []string{"ERROR", "FATAL", "WARN"} {
		change := alterCase{kind: 8, name: "1", ops: []configOp{{key: "root", value: level}}}
		w.same(t, "root to "+level, change.incremental(1))
		for v := int16(1); v <= 4; v++ {
			w.same(t, "root at "+level, root(v, "1", "root"))
		}
	}
	w.same(t, "an unknown one", root(4, "1", "nope"))
	for _, broker := range []string{"", "x", "2", "-1"} {
		w.same(t, "broker "+broker, root(4, broker, "root"))
	}
}
