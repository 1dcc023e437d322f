// Package e2e holds the end-to-end tests: the real binary, real encoders, real players, on both pairs of database and storage.
// They know the service from outside only.
package e2e
