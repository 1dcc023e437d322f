package db

import (
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	connectTime = 10 * time.Second // unless the URL says connect_timeout
	// connectEach is for each of several servers: one whose machine has lost its power is not waited for for long.
	connectEach = 3 * time.Second

	// When a server's machine says nothing, its connections end within 11 seconds, and within as many when it takes
	// nothing: Linux would try for a quarter of an hour.
	probeAfter, probeEvery, probes = 5 * time.Second, 2 * time.Second, 3
	takenWithin                    = 11 * time.Second

	readOnly = "25006" // read_only_sql_transaction
)

// parsePostgres reads a URL, which may name several servers. Its error does not repeat that, with the password. Only a
// server that takes writes is connected to, whatever the URL says of that: what another one has is older, and not to be
// read either.
func parsePostgres(rawURL string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(rawURL)
	if err != nil {
		return nil, errors.New("open database: the PostgreSQL URL is not valid")
	}
	cfg.MaxConns = max(cfg.MaxConns, leastConns)
	conn := &cfg.ConnConfig.Config
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTime
		for _, other := range conn.Fallbacks { // those of one server differ in their encryption
			if other.Host != conn.Host || other.Port != conn.Port {
				conn.ConnectTimeout = connectEach
			}
		}
	}
	conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	conn.OnPgError = goesOn
	d := net.Dialer{
		Timeout:         conn.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeEvery, Count: probes},
		Control:         untaken,
	}
	conn.DialFunc = d.DialContext
	return cfg, nil
}

// goesOn says whether a connection is used after an error of the server. One that takes no writes any more is left:
// another server has taken its place.
func goesOn(_ *pgconn.PgConn, e *pgconn.PgError) bool {
	return !strings.EqualFold(e.Severity, "FATAL") && e.SeverityUnlocalized != "FATAL" && e.Code != readOnly
}
