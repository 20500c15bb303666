package protocol

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	codeUnsupportedVersion = 35
	codeInvalidRequest     = 42
)

// SupportedFeature is a feature of the cluster and the levels that this broker
// can work at, both ends included.
type SupportedFeature struct {
	Name     string
	Min, Max int16
}

// FinalizedFeature is a feature and the levels that the cluster has settled on.
type FinalizedFeature struct {
	Name     string
	Min, Max int16
}

// Features is what ApiVersions tells about features.
type Features struct {
	Supported []SupportedFeature
	// FinalizedEpoch is −1 when unknown; the finalized features count only
	// when it is not negative.
	FinalizedEpoch int64
	Finalized      []FinalizedFeature
}

// ApiVersions is the answer to an ApiVersions request of a supported version.
//
// Kafka: up to version 3 a supported feature whose minimum is 0 is left out,
// since clients of that time fail on it (KAFKA-17011); finalized ones are
// always there.
func (t *Table) ApiVersions(version int16, f Features) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = version
	for _, r := range t.advertised {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = r.Key, r.Min, r.Max
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	if version < 3 {
		return resp
	}
	for _, s := range f.Supported {
		if version == 3 && s.Min == 0 {
			continue
		}
		k := kmsg.NewApiVersionsResponseSupportedFeature()
		k.Name, k.MinVersion, k.MaxVersion = s.Name, s.Min, s.Max
		resp.SupportedFeatures = append(resp.SupportedFeatures, k)
	}
	resp.FinalizedFeaturesEpoch = f.FinalizedEpoch
	for _, s := range f.Finalized {
		k := kmsg.NewApiVersionsResponseFinalizedFeature()
		k.Name, k.MinVersionLevel, k.MaxVersionLevel = s.Name, s.Min, s.Max
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, k)
	}
	return resp
}

// UnsupportedApiVersions is the answer to an ApiVersions request of a version
// that is not accepted: a body of version 0 with error 35 and the one entry of
// ApiVersions itself, so that the client can ask again (KIP-511).
func (t *Table) UnsupportedApiVersions() *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = codeUnsupportedVersion
	for _, r := range t.advertised {
		if r.Key == KeyApiVersions {
			k := kmsg.NewApiVersionsResponseApiKey()
			k.ApiKey, k.MinVersion, k.MaxVersion = r.Key, r.Min, r.Max
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	}
	return resp
}

// InvalidApiVersions is the answer to an ApiVersions request whose software
// name or version is not [ValidSoftware].
func InvalidApiVersions(version int16) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = version
	resp.ErrorCode = codeInvalidRequest
	return resp
}

// ValidSoftware says whether a client software name or version is acceptable:
// letters, digits, '-' and '.', the first and last being letters or digits.
// ApiVersions answers any other with [InvalidApiVersions].
func ValidSoftware(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		inside := i > 0 && i < len(s)-1
		if !alnum && !(inside && (c == '-' || c == '.')) {
			return false
		}
	}
	return true
}
