package tokenkey

import (
	"context"
	"errors"
	"hash/crc32"
	"strings"

	kms "cloud.google.com/go/kms/apiv1"
	"cloud.google.com/go/kms/apiv1/kmspb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// kmsKey is a key of Cloud KMS. It does not use Tink's own client, which links all signing algorithms of Cloud KMS and
// adds 1 MB to each function that executes calls.
type kmsKey struct {
	client *kms.KeyManagementClient
	name   string
}

// errDamaged means that a request or an answer was altered in transit
// (docs.cloud.google.com/kms/docs/data-integrity-guidelines).
var errDamaged = errors.New("tokenkey: data from or to Cloud KMS does not match its checksum")

// EncryptWithContext encrypts with Cloud KMS.
func (k kmsKey) EncryptWithContext(ctx context.Context, plaintext, associated []byte) ([]byte, error) {
	res, err := k.client.Encrypt(ctx, &kmspb.EncryptRequest{Name: k.name, Plaintext: plaintext,
		PlaintextCrc32C: checksum(plaintext), AdditionalAuthenticatedData: associated,
		AdditionalAuthenticatedDataCrc32C: checksum(associated)})
	if err != nil {
		return nil, err
	}
	if !res.VerifiedPlaintextCrc32C || !res.VerifiedAdditionalAuthenticatedDataCrc32C ||
		res.CiphertextCrc32C.GetValue() != checksum(res.Ciphertext).Value || !strings.HasPrefix(res.Name, k.name) {
		return nil, errDamaged
	}
	return res.Ciphertext, nil
}

// DecryptWithContext decrypts with Cloud KMS.
func (k kmsKey) DecryptWithContext(ctx context.Context, ciphertext, associated []byte) ([]byte, error) {
	res, err := k.client.Decrypt(ctx, &kmspb.DecryptRequest{Name: k.name, Ciphertext: ciphertext,
		CiphertextCrc32C: checksum(ciphertext), AdditionalAuthenticatedData: associated,
		AdditionalAuthenticatedDataCrc32C: checksum(associated)})
	if err != nil {
		return nil, err
	}
	if res.PlaintextCrc32C.GetValue() != checksum(res.Plaintext).Value {
		return nil, errDamaged
	}
	return res.Plaintext, nil
}

func checksum(b []byte) *wrapperspb.Int64Value {
	return wrapperspb.Int64(int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}
