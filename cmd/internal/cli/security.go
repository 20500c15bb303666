package cli

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// securityOptions reads security.protocol and what belongs to it. Key and trust stores
// must be PEM; SASL mechanisms are PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
func securityOptions(settings Properties) ([]kgo.Opt, error) {
	protocol := strings.ToUpper(settings.Get("security.protocol", "PLAINTEXT"))
	var options []kgo.Opt
	switch protocol {
	case "PLAINTEXT", "SASL_PLAINTEXT":
	case "SSL", "SASL_SSL":
		config, err := tlsConfig(settings)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	default:
		return nil, Fail(classConfig, "Invalid value %s for configuration security.protocol: String must be one of "+
			"(case insensitive): PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL", protocol)
	}
	if strings.HasPrefix(protocol, "SASL_") {
		mechanism, err := saslMechanism(settings)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

func tlsConfig(settings Properties) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if settings.Get("ssl.endpoint.identification.algorithm", "https") == "" {
		config.InsecureSkipVerify = true // the setting asks for a certificate check without the name
		config.VerifyConnection = nil
	}
	trust, err := pem(settings, "ssl.truststore.certificates", "ssl.truststore.location")
	if err != nil {
		return nil, err
	}
	if trust != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(trust) {
			return nil, Fail(classKafka, "No certificate in the trust store; only the type PEM is known")
		}
	}
	if config.InsecureSkipVerify {
		config.VerifyConnection = chainOnly(config.RootCAs)
	}
	return config, addClientCertificate(config, settings)
}

// chainOnly checks the certificate chain, but not the name of the host.
func chainOnly(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, certificate := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(certificate)
		}
		_, err := state.PeerCertificates[0].Verify(options)
		return err
	}
}

func addClientCertificate(config *tls.Config, settings Properties) error {
	store, err := pem(settings, "", "ssl.keystore.location")
	if err != nil {
		return err
	}
	chain, key := []byte(settings["ssl.keystore.certificate.chain"]), []byte(settings["ssl.keystore.key"])
	if store != nil {
		chain, key = store, store
	}
	if len(chain) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return Fail(classKafka, "Failed to read the key store; only the type PEM is known: %s", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

// pem is the value of one key, or the content of the file that the other names.
func pem(settings Properties, inline, file string) ([]byte, error) {
	if text := settings[inline]; text != "" {
		return []byte(text), nil
	}
	if settings[file] == "" {
		return nil, nil
	}
	data, err := os.ReadFile(settings[file])
	if err != nil {
		return nil, Fail(classKafka, "Failed to load store %s: %s", settings[file], err)
	}
	return data, nil
}

var jaasOption = Pattern(`(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"`)

func saslMechanism(settings Properties) (sasl.Mechanism, error) {
	credentials := map[string]string{}
	for _, m := range jaasOption().FindAllStringSubmatch(settings["sasl.jaas.config"], -1) {
		credentials[m[1]] = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[2])
	}
	user, password := credentials["username"], credentials["password"]
	switch name := settings.Get("sasl.mechanism", "GSSAPI"); name {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	default:
		return nil, Fail(classConfig, "The SASL mechanism %s is not known; use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", name)
	}
}
