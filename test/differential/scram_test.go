//go:build oracle

package differential

import (
	"fmt"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type (
	scramDeletion  = kmsg.AlterUserSCRAMCredentialsRequestDeletion
	scramUpsertion = kmsg.AlterUserSCRAMCredentialsRequestUpsertion
)

// The SCRAM mechanisms on the wire.
const (
	scram256 int8 = 1
	scram512 int8 = 2
)

// Users whose credentials are looked at after the restart.
const (
	oddUser  = "with space, =comma and ü"
	lostUser = "lost"
)

func unset(user string, mechanism int8) scramDeletion {
	return scramDeletion{Name: user, Mechanism: mechanism}
}

func credential(user string, mechanism int8, iterations int32) scramUpsertion {
	return scramUpsertion{Name: user, Mechanism: mechanism, Iterations: iterations, Salt: []byte("salt"),
		SaltedPassword: []byte("salted password")}
}

func alterScram(deletions []scramDeletion, upsertions ...scramUpsertion) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		req.Deletions, req.Upsertions = deletions, upsertions
		return req
	}
}

func describeScram(users ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
		for _, u := range users {
			req.Users = append(req.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: u})
		}
		return req
	}
}

// scramSteps are changes of credentials, one after the other.
func scramSteps() (steps []request) {
	none := []scramDeletion(nil)
	noPassword, noSalt := credential("no-password", scram256, 4096), credential("no-salt", scram512, 4096)
	noPassword.SaltedPassword, noSalt.Salt = nil, nil
	return []request{
		alterScram(none),
		alterScram(none, credential("a", scram256, 4096), credential("b", scram512, 16384)),
		alterScram(none, credential("a", scram512, 8192)),
		alterScram(none, credential("a", scram512, 8192)), // as it is
		alterScram(none, credential("a", scram256, 5000), credential("a", scram512, 5000)),
		alterScram(none, credential("c", scram256, 4095), credential("d", scram256, 16385), credential("e", scram512, 4095)),
		alterScram(none, credential("c", scram256, 0), credential("d", scram512, -1),
			credential("e", scram512, math.MaxInt32)),
		alterScram(none, credential("c", 0, 4096), credential("d", 3, 1), credential("e", -1, 4096)),
		alterScram(none, credential("", scram256, 1), credential("", 9, 4096)),
		alterScram(none, credential("c", 9, 4096), credential("c", scram256, 4096)),
		alterScram(none, credential("c", scram256, 4096), credential("c", 9, 4096)),
		alterScram(none, noPassword, noSalt),
		alterScram(none, credential(oddUser, scram512, 4096), credential(lostUser, scram256, 4096)),
		alterScram([]scramDeletion{unset("nobody", scram256), unset("b", scram256), unset("", scram256), unset("a", 7)}),
		alterScram([]scramDeletion{unset("a", scram256), unset("a", scram512)}),
		alterScram([]scramDeletion{unset("a", scram256), unset("a", scram256), unset("a", scram256)}),
		alterScram([]scramDeletion{unset("a", scram256)}, credential("a", scram512, 4097)),
		alterScram([]scramDeletion{unset("nobody", scram256)}, credential("nobody", scram512, 4097)),
		alterScram([]scramDeletion{unset("a", scram256)}, credential("a", 9, 4097)),
		alterScram([]scramDeletion{unset("a", scram256), unset("b", 0)}, credential("c", scram512, 4097),
			credential("d", scram512, 1)),
		alterScram([]scramDeletion{unset("a", scram256)}), // gone already
	}
}

// scramOrder sorts what Kafka keeps in hash tables.
var scramOrder = sorted("CredentialInfos", "Results")

func (w *world) testScramCredentials(t *testing.T) {
	order := scramOrder
	w.same(t, "none", describeScram(), order)
	for i, step := range scramSteps() {
		name := fmt.Sprintf("step %d", i)
		w.same(t, name, step, order)
		w.sameSoon(t, name+": all", describeScram(), order)
	}
	for name, users := range map[string][]string{
		"one": {"a"}, "twice": {"a", "b", "a"}, "empty": {""}, "unknown": {"nobody", "b"}, "thrice": {"x", "x", "x"},
	} {
		w.same(t, name, describeScram(users...), order)
	}
}

// scramAfterRestart compares what is there after a restart. Kafka has lost a credential, whatever its user is called:
// its ScramDelta, which has read the whole log, drops all of a mechanism when it comes upon the removed one of another
// user first, and what it adds then is in a table that nobody has any more. Tidemark must have it still.
func (w *world) scramAfterRestart(t *testing.T) {
	t.Helper()
	w.same(t, "SCRAM credentials", describeScram("a", "b", "c", "no-salt", oddUser), scramOrder)
	for _, s := range w.sides {
		want := int16(0)
		if s.Name == "Kafka" {
			want = 91 // RESOURCE_NOT_FOUND
		}
		answer, ok := s.ask(t, describeScram(lostUser)(s)).(*kmsg.DescribeUserSCRAMCredentialsResponse)
		if !ok || len(answer.Results) != 1 || answer.Results[0].ErrorCode != want {
			t.Errorf("%s: credential of %q: %+v, want error %d", s.Name, lostUser, answer, want)
		}
	}
}
