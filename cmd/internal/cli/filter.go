package cli

import (
	"regexp"
	"strings"
	"sync"
)

// TopicPattern is a regular expression for topic names, as Kafka's tools take it: a
// comma means "or", blanks and quotes around it do not count. It must match the whole
// name.
type TopicPattern struct{ expression *regexp.Regexp }

// ParseTopicPattern can fail with a Failure for a broken expression. The syntax is
// RE2's: Java's look-around and back references are not available.
func ParseTopicPattern(raw string) (*TopicPattern, error) {
	text := strings.NewReplacer(",", "|", " ", "").Replace(strings.TrimSpace(raw))
	text = strings.Trim(text, `"'`)
	expression, err := WholeMatch(text)
	if err != nil {
		return nil, Fail("java.lang.RuntimeException", "%s is an invalid regex.", text)
	}
	return &TopicPattern{expression}, nil
}

// WholeMatch compiles an expression that must match all of a string.
func WholeMatch(text string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + text + `)\z`)
}

// Pattern is a regular expression that is compiled when it is first asked for: the many
// tools of the binary have more of them than any one needs.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// Match reports whether the topic's whole name fits.
func (p *TopicPattern) Match(topic string) bool { return p.expression.MatchString(topic) }

// InternalTopic reports whether Kafka keeps the topic for itself.
func InternalTopic(name string) bool {
	switch name {
	case "__consumer_offsets", "__transaction_state", "__share_group_state":
		return true
	}
	return false
}
