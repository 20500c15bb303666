//go:build oracle

package relay

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/ledger"
)

// credentials compares the iterations of the SCRAM credential that the leg before set, and sets it anew.
func (w *world) credentials(s *server) {
	w.t.Helper()
	if !s.Serves(50, 51) {
		return
	}
	const user, mechanism = "relay", 1
	describe := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	found := int32(0)
	for _, r := range ledger.Ask[*kmsg.DescribeUserSCRAMCredentialsResponse](w.t, s.Client, describe).Results {
		if len(r.CredentialInfos) == 1 && r.User == user && r.CredentialInfos[0].Mechanism == mechanism {
			found = r.CredentialInfos[0].Iterations
		}
	}
	if found != w.iterations {
		w.t.Errorf("SCRAM credential with %d iterations, want %d", found, w.iterations)
	}
	w.iterations = int32(4096 + w.legs)
	alter := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	alter.Upsertions = []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{{Name: user, Mechanism: mechanism,
		Iterations: w.iterations, Salt: []byte("salt"), SaltedPassword: []byte("password")}}
	if r := ledger.Ask[*kmsg.AlterUserSCRAMCredentialsResponse](w.t, s.Client, alter).Results[0]; r.ErrorCode != 0 {
		w.t.Errorf("SCRAM credential cannot be set: error %d", r.ErrorCode)
	}
}
