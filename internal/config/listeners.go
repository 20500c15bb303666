package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Listener is one address of a node.
type Listener struct {
	Name     string // upper case
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	Host     string // "" for every address; no brackets
	Port     int    // 0 for one that the system chooses
}

// Voter is one controller of a fixed quorum.
type Voter struct {
	ID   int32
	Host string
	Port int
}

// hostCharacters are those of a host beside letters and digits.
const hostCharacters = "-%._:"

// splitAddress takes HOST:PORT or [HOST]:PORT apart; the port is a number, and may be less than 0.
func splitAddress(text string) (host, port string, ok bool) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		return "", "", false
	}
	host, port = strings.TrimSuffix(strings.TrimPrefix(text[:colon], "["), "]"), text[colon+1:]
	digits := strings.TrimPrefix(port, "-")
	return host, port, onlyOf(host, hostCharacters) && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// splitServer takes an address of a server apart, which may begin with a protocol.
func splitServer(text string) (host, port string, ok bool) {
	if protocol, rest, found := strings.Cut(text, "://"); found {
		if !onlyOf(protocol, "-%._") {
			return "", "", false
		}
		text = rest
	}
	host, port, ok = splitAddress(text)
	return host, port, ok && port[0] != '-'
}

var securityProtocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// fillListeners resolves everything about listeners and the quorum.
func (b *Broker) fillListeners(n *Node) error {
	b.ControllerListenerNames = n.list("controller.listener.names")
	protocols, err := n.listenerProtocols()
	if err != nil {
		return err
	}
	if b.Listeners, err = parseListeners(n.list("listeners"), protocols, true); err != nil {
		return err
	}
	if b.AdvertisedListeners, err = n.advertisedListeners(b, protocols); err != nil {
		return err
	}
	if b.InterBrokerListenerName, err = n.interBrokerListener(protocols); err != nil {
		return err
	}
	if b.QuorumVoters, err = parseVoters(n.list("controller.quorum.voters")); err != nil {
		return err
	}
	b.QuorumBootstrapServers = n.list("controller.quorum.bootstrap.servers")
	b.MaxConnectionsPerIPOverrides, err = perIPOverrides(n.text("max.connections.per.ip.overrides"))
	return err
}

// listenerProtocols returns the security protocol of each listener name.
// Kafka: controller listeners are PLAINTEXT when nothing says otherwise and no listener is named after SSL or SASL.
func (n *Node) listenerProtocols() (map[string]string, error) {
	pairs, err := parsePairs("listener.security.protocol.map", n.text("listener.security.protocol.map"))
	if err != nil {
		return nil, err
	}
	protocols := make(map[string]string, len(pairs))
	for name, protocol := range pairs {
		upper := strings.ToUpper(protocol)
		if !slices.Contains(securityProtocols, upper) {
			return nil, invalidConfig("Invalid security protocol `%s` defined in listener.security.protocol.map", protocol)
		}
		protocols[strings.ToUpper(name)] = upper
	}
	if _, set := n.effective["listener.security.protocol.map"]; set {
		return protocols, nil
	}
	if secure, err := n.namesSecureListener(); secure || err != nil {
		return protocols, err
	}
	for _, name := range n.list("controller.listener.names") {
		protocols[name] = "PLAINTEXT"
	}
	return protocols, nil
}

// namesSecureListener reports whether a listener has the name of SSL or of a kind of SASL.
func (n *Node) namesSecureListener() (bool, error) {
	secure := func(name string) bool { return name != "PLAINTEXT" && slices.Contains(securityProtocols, name) }
	if slices.ContainsFunc(n.list("controller.listener.names"), secure) {
		return true, nil
	}
	for _, l := range n.list("listeners") {
		name, _, ok := strings.Cut(l, ":")
		if !ok {
			return false, invalidConfig("Unable to parse a listener name from %s", l)
		}
		if secure(strings.ToUpper(name)) {
			return true, nil
		}
	}
	return false, nil
}

// parsePairs reads KEY:VALUE,…; the last colon of a pair separates.
func parsePairs(name, text string) (map[string]string, error) {
	pairs := make(map[string]string)
	for _, pair := range splitList(strings.TrimSpace(text)) {
		i := strings.LastIndexByte(pair, ':')
		if i < 0 {
			return nil, invalidConfig("Error parsing configuration property '%s': begin 0, end -1, length %d", name, len(pair))
		}
		pairs[strings.TrimSpace(pair[:i])] = strings.TrimSpace(pair[i+1:])
	}
	return pairs, nil
}

func perIPOverrides(text string) (map[string]int32, error) {
	pairs, err := parsePairs("max.connections.per.ip.overrides", text)
	if err != nil {
		return nil, err
	}
	limits := make(map[string]int32, len(pairs))
	var invalid []string
	for host, count := range pairs {
		n, err := strconv.ParseInt(count, 10, 32)
		if err != nil {
			return nil, invalidConfig("For input string: \"%s\"", count)
		}
		if !onlyOf(host, hostCharacters) {
			invalid = append(invalid, host)
		}
		limits[host] = int32(n)
	}
	if invalid != nil {
		slices.Sort(invalid)
		return nil, invalidConfig("max.connections.per.ip.overrides contains invalid addresses : %s",
			strings.Join(invalid, ","))
	}
	return limits, nil
}

func parseListeners(entries []string, protocols map[string]string, distinctPorts bool) ([]Listener, error) {
	listeners := make([]Listener, 0, len(entries))
	for _, entry := range entries {
		l, err := parseListener(entry, protocols)
		if err != nil {
			return nil, listenersError(entries, err)
		}
		listeners = append(listeners, l)
	}
	if err := checkListeners(listeners, entries, distinctPorts); err != nil {
		return nil, listenersError(entries, err)
	}
	return listeners, nil
}

func listenersError(entries []string, err error) error {
	return invalidConfig("Error creating broker listeners from '%s': %s", javaList(entries), err)
}

func javaList(elements []string) string { return "[" + strings.Join(elements, ", ") + "]" }

func parseListener(entry string, protocols map[string]string) (Listener, error) {
	protocol := max(strings.LastIndex(entry, "://"), 0)
	host, portText, ok := splitAddress(strings.TrimPrefix(entry[protocol:], "://"))
	if !ok || !strings.HasPrefix(entry[protocol:], "://") {
		return Listener{}, fmt.Errorf("Unable to parse %s to a broker endpoint", entry) //nolint:staticcheck // Kafka's text
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return Listener{}, fmt.Errorf("For input string: %q", portText) //nolint:staticcheck // Kafka's text
	}
	l := Listener{Name: strings.ToUpper(entry[:protocol]), Host: host, Port: int(port)}
	if l.Protocol = protocols[l.Name]; l.Protocol == "" {
		return l, fmt.Errorf("No security protocol defined for listener %s", l.Name) //nolint:staticcheck // Kafka's text
	}
	return l, nil
}

// checkListeners wants distinct names, and distinct ports unless one host is IPv4 and the other IPv6.
func checkListeners(listeners []Listener, entries []string, distinctPorts bool) error {
	names := make(map[string]bool)
	byPort := make(map[int][]Listener)
	for _, l := range listeners {
		names[l.Name] = true
		if l.Port != 0 {
			byPort[l.Port] = append(byPort[l.Port], l)
		}
	}
	if len(names) != len(listeners) {
		//nolint:staticcheck // Kafka's text
		return fmt.Errorf("Each listener must have a different name, listeners: %s", javaList(entries))
	}
	if !distinctPorts {
		return nil
	}
	for _, port := range slices.Sorted(maps.Keys(byPort)) {
		if err := checkSharedPort(byPort[port], entries); err != nil {
			return err
		}
	}
	return nil
}

func checkSharedPort(same []Listener, entries []string) error {
	if len(same) < 2 {
		return nil
	}
	var v4, v6 int
	for _, l := range same {
		addr, err := netip.ParseAddr(l.Host)
		if err == nil && addr.Is4() {
			v4++
		} else if err == nil {
			v6++
		}
	}
	list, port := javaList(entries), same[0].Port
	//nolint:staticcheck // Kafka's texts
	switch {
	case len(same)-v4-v6 > 1:
		return fmt.Errorf("Each listener must have a different port, listeners: %s", list)
	case v4+v6 > 2:
		return fmt.Errorf("Each listener must have a different port unless exactly one listener has an IPv4 address "+
			"and the other IPv6 address, listeners: %s, port: %d", list, port)
	case v4+v6 == 2 && (v4 != 1 || len(same) > 2):
		return fmt.Errorf("If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "+
			"listeners: %s, port: %d", list, port)
	}
	return nil
}

// advertisedListeners are the listeners of the broker role as clients are told them.
func (n *Node) advertisedListeners(b *Broker, protocols map[string]string) ([]Listener, error) {
	all := b.Listeners
	if !n.values["advertised.listeners"].null {
		var err error
		if all, err = parseListeners(n.list("advertised.listeners"), protocols, false); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(l Listener) bool {
		return slices.Contains(b.ControllerListenerNames, l.Name)
	}), nil
}

func (n *Node) interBrokerListener(protocols map[string]string) (string, error) {
	if v := n.values["inter.broker.listener.name"]; !v.null {
		if _, both := n.effective["security.inter.broker.protocol"]; both {
			return "", invalidConfig("Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.")
		}
		name := strings.ToUpper(v.s)
		if protocols[name] == "" {
			return "", invalidConfig("Listener with name %s defined in inter.broker.listener.name not found in "+
				"listener.security.protocol.map.", name)
		}
		return name, nil
	}
	return n.text("security.inter.broker.protocol"), nil
}

// quorumVoters is the check of controller.quorum.voters.
func quorumVoters(_ string, v value) error {
	_, err := parseVoters(v.list)
	return err
}

func parseVoters(entries []string) ([]Voter, error) {
	const form = "Each entry should be in the form `{id}@{host}:{port}`."
	var voters []Voter
	for _, entry := range entries {
		id, address, ok := strings.Cut(entry, "@")
		if !ok || strings.Contains(address, "@") {
			return nil, invalidConfig("Invalid configuration value for controller.quorum.voters. %s", form)
		}
		number, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			return nil, invalidConfig("Failed to parse voter ID as an integer from %s", id)
		}
		host, portText, ok := splitServer(address)
		if !ok {
			return nil, invalidConfig("Failed to parse host name from entry %s for the configuration "+
				"controller.quorum.voters. %s", entry, form)
		}
		port, err := strconv.ParseInt(portText, 10, 32)
		if err != nil {
			return nil, invalidConfig("For input string: %q", portText)
		}
		voters = append(voters, Voter{int32(number), host, int(port)})
	}
	return voters, nil
}

// bootstrapServers is the check of controller.quorum.bootstrap.servers.
func bootstrapServers(name string, v value) error {
	for _, entry := range v.list {
		if _, _, ok := splitServer(entry); !ok {
			return invalidConfig("Failed to parse host name from %s for the configuration %s. "+
				`Each entry should be in the form "{host}:{port}"`, entry, name)
		}
	}
	return nil
}
