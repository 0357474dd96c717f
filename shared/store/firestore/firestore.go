// Package firestore is a store in Google Cloud Firestore (Native mode). Each method is one RPC: Get is
// BatchGetDocuments, Query is RunQuery, Commit is Commit with preconditions. It uses no transactions: 100 concurrent
// writers of one document take 0.1 s with preconditions and several seconds with RunTransaction (reliability §0.4).
//
// It uses Google's generated client (apiv1), not the hand-written client around it. The only atomic write of the
// hand-written client that takes one RPC is the deprecated Batch. Batch cannot replace a document under a precondition,
// because its Update keeps the fields that are not named. Batch also repeats a commit whose answer was lost, so that a
// commit that succeeded is reported as a conflict.
//
// A document is stored as its Fields, with Data as the string "data" and the version that it replaced as "previous".
package firestore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	apiv1 "cloud.google.com/go/firestore/apiv1"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/countersign-run/countersign/shared/store"
)

// defaultDatabase is Firestore's name for the only database of a project.
const defaultDatabase = "(default)"

// Store implements [store.Store] in one Firestore database.
type Store struct {
	client  *apiv1.Client
	root    string      // projects/P/databases/D
	headers metadata.MD // Google needs them to find a named database; the hand-written client sends the same
	timeout time.Duration

	emulated bool // the server is the emulator
	closed   atomic.Bool
}

var _ store.Store = (*Store)(nil)

// Open returns a client for the database; an empty name stands for the default one. It connects in the background, so
// the first call reports an unavailable server. If FIRESTORE_EMULATOR_HOST is set, it uses that emulator, as Google's
// own libraries do. Otherwise it uses Google's default credentials. opts are for tests.
func Open(ctx context.Context, projectID, database string, opts ...option.ClientOption) (*Store, error) {
	if projectID == "" {
		return nil, errors.New("firestore store: no project ID")
	}
	if database == "" {
		database = defaultDatabase
	}
	host := os.Getenv("FIRESTORE_EMULATOR_HOST")
	client, err := apiv1.NewClient(ctx, append(emulator(host), opts...)...)
	if err != nil {
		return nil, fmt.Errorf("firestore store: open: %w", err)
	}
	// The client's own retries hide how often a commit was sent (see call), and repeat a commit that is too large until
	// its deadline (reliability §0.5).
	client.CallOptions = &apiv1.CallOptions{}
	//lint:ignore SA1019 of a pool of connections, which this is not, one would be made early
	client.Connection().Connect() // otherwise it would connect at the first call
	root := "projects/" + projectID + "/databases/" + database
	return &Store{client: client, root: root, timeout: callTimeout, emulated: host != "", headers: metadata.Pairs(
		"google-cloud-resource-prefix", root,
		"x-goog-request-params", "project_id="+url.QueryEscape(projectID)+"&database_id="+url.QueryEscape(database),
	)}, nil
}

func emulator(host string) []option.ClientOption {
	if host == "" {
		return nil
	}
	return []option.ClientOption{
		option.WithEndpoint("passthrough:///" + host),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithPerRPCCredentials(owner{})),
	}
}

// owner is the credential of an administrator of the emulator. The emulator's rules do not apply to administrators.
type owner struct{}

func (owner) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer owner"}, nil
}
func (owner) RequireTransportSecurity() bool { return false }

// Close closes the connection. A second Close does nothing.
func (s *Store) Close() error {
	s.closed.Store(true)
	if err := s.client.Close(); err != nil && !isClosing(err) {
		return fmt.Errorf("firestore store: close: %w", err)
	}
	return nil
}

func (s *Store) documentName(path string) string { return s.root + "/documents/" + path }

func (s *Store) documentPath(name string) string { return strings.TrimPrefix(name, s.documentName("")) }
