package controller

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"testing"

	"tidemark/internal/metadata"
)

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestScramCredentials(t *testing.T) {
	k := newCluster(t)
	alter := func(c AlterUserScramCredentials) AlterScramResult {
		t.Helper()
		return k.do(c).(AlterScramResult)
	}
	salt := decodeBase64(t, "W22ZaJ0SNY7soEsUEjb6gQ==") // of the exchange in RFC 7677, section 3
	salted, err := pbkdf2.Key(sha256.New, "pencil", salt, 4096, sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	good := ScramUpsertion{User: "user", Mechanism: ScramSHA256, Iterations: 4096, Salt: salt, SaltedPassword: salted}
	added := alter(AlterUserScramCredentials{Upsertions: []ScramUpsertion{good}})
	if len(added.Users) != 1 || added.Users[0].Err != nil {
		t.Fatalf("set: %+v", added)
	}
	c := k.image.ScramCredential("user", ScramSHA256)
	if c == nil || c.Iterations != 4096 || string(c.Salt) != string(salt) {
		t.Fatalf("stored: %+v", c)
	}
	stored, server := decodeBase64(t, "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="),
		decodeBase64(t, "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")
	if string(c.StoredKey) != string(stored) || string(c.ServerKey) != string(server) {
		t.Errorf("keys %x and %x", c.StoredKey, c.ServerKey)
	}

	before := k.image.Offset()
	long := good
	long.User, long.Mechanism = "other", ScramSHA512
	r := alter(AlterUserScramCredentials{
		Deletions:  []ScramDeletion{{User: "user", Mechanism: ScramSHA256}},
		Upsertions: []ScramUpsertion{long, good, {User: "few", Mechanism: ScramSHA512, Iterations: 1}}})
	if len(r.Users) != 3 || r.Users[0] != (AlteredScram{User: "other"}) ||
		!errors.Is(r.Users[1].Err, ErrDuplicateResource) || !errors.Is(r.Users[2].Err, ErrUnacceptableCredential) {
		t.Errorf("mixed: %+v", r)
	}
	if k.image.Offset() != before+1 || len(k.image.ScramCredential("other", ScramSHA512).StoredKey) != 64 {
		t.Errorf("mixed: %d records", k.image.Offset()-before)
	}

	r = alter(AlterUserScramCredentials{Deletions: []ScramDeletion{{User: "user", Mechanism: ScramSHA256}}})
	if r.Users[0].Err != nil || k.image.ScramCredential("user", ScramSHA256) != nil {
		t.Errorf("removed: %+v", r)
	}
}

func TestScramCredentialsNeedTheirLevel(t *testing.T) {
	k := newCluster(t)
	k.image = imageOfLevel(t, 10)
	d, err := k.decide(AlterUserScramCredentials{Upsertions: []ScramUpsertion{{User: "u", Mechanism: ScramSHA256}}})
	if err != nil {
		t.Fatal(err)
	}
	if refused := d.Result.(AlterScramResult).Users[0].Err; !errors.Is(refused, ErrUnsupportedVersion) {
		t.Errorf("%v", refused)
	}
}

func imageOfLevel(t *testing.T, level int16) *metadata.Image {
	t.Helper()
	d := metadata.NewDelta(metadata.NewImage())
	if err := d.Replay(metadata.Record{Body: &metadata.FeatureLevelRecord{Name: metadata.MetadataVersionFeature,
		FeatureLevel: level}}); err != nil {
		t.Fatal(err)
	}
	return d.Image()
}
