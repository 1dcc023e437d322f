package main

import (
	"go/ast"
	"strings"
)

// aloneTests finds the tests of a folder that are not parallel: nothing else of their package runs beside them.
func aloneTests(dir string) (names []string, err error) {
	return testFunctions(dir, func(fn *ast.FuncDecl) bool { return isTest(fn) && !isParallel(fn) })
}

func isTest(fn *ast.FuncDecl) bool {
	return strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

// isParallel reports whether a test calls t.Parallel itself. That its subtests do says nothing of the test.
func isParallel(fn *ast.FuncDecl) bool {
	for _, s := range fn.Body.List {
		if e, is := s.(*ast.ExprStmt); is {
			if call, is := e.X.(*ast.CallExpr); is {
				if sel, is := call.Fun.(*ast.SelectorExpr); is && sel.Sel.Name == "Parallel" {
					return true
				}
			}
		}
	}
	return false
}
