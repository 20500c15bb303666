package api

import (
	"fmt"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeLoggers are levels without loggers.
type fakeLoggers map[string]string

func (f fakeLoggers) Levels() map[string]string   { return maps.Clone(f) }
func (f fakeLoggers) SetLevel(name, level string) { f[name] = level }
func (f fakeLoggers) UnsetLevel(name string)      { f[name] = f[rootLogger] }

func TestLoggerLevels(t *testing.T) {
	w := newWorld(t)
	levels := fakeLoggers{"root": "INFO", "a": "WARN"}
	w.Loggers = levels
	alter := func(validateOnly bool, broker string, ops ...kmsg.IncrementalAlterConfigsRequestResourceConfig) int16 {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = validateOnly
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBrokerLogger,
			ResourceName: broker, Configs: ops}}
		return ask[*kmsg.IncrementalAlterConfigsResponse](w, req).Resources[0].ErrorCode
	}
	op := func(name string, op int8, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
		return kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: kmsg.IncrementalAlterConfigOp(op),
			Value: &value}
	}
	for i, test := range []struct {
		code         int16
		validateOnly bool
		broker       string
		ops          []kmsg.IncrementalAlterConfigsRequestResourceConfig
		want         string
	}{
		{0, false, "1", nil, "map[a:WARN root:INFO]"},
		{0, true, "1", []kmsg.IncrementalAlterConfigsRequestResourceConfig{op("a", 0, "DEBUG")}, "map[a:WARN root:INFO]"},
		{42, false, "2", []kmsg.IncrementalAlterConfigsRequestResourceConfig{op("a", 0, "DEBUG")}, "map[a:WARN root:INFO]"},
		{40, false, "1", []kmsg.IncrementalAlterConfigsRequestResourceConfig{op("a", 0, "DEBUG"), op("root", 0, "LOUD")},
			"map[a:WARN root:INFO]"},
		{0, false, "1", []kmsg.IncrementalAlterConfigsRequestResourceConfig{op("a", 0, "DEBUG"), op("root", 0, "ERROR")},
			"map[a:DEBUG root:ERROR]"},
		{0, false, "1", []kmsg.IncrementalAlterConfigsRequestResourceConfig{op("a", 1, "")}, "map[a:ERROR root:ERROR]"},
	} {
		if code := alter(test.validateOnly, test.broker, test.ops...); code != test.code {
			t.Errorf("case %d: error %d, want %d", i, code, test.code)
		}
		if got := fmt.Sprint(levels.Levels()); got != test.want {
			t.Errorf("case %d: %s, want %s", i, got, test.want)
		}
	}
}
